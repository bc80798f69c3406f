// cermet rules: what rewriting puts in the place of what.
#include "base/text.hpp"
#include "cli/verb.hpp"
#include "graph/rewrite/rule.hpp"

namespace cermet::cli::rules_verb {
namespace {

bool is_listed(const Rule& rule, const std::string& wanted) {
  return wanted.empty() || name_of(rule.rule_class) == wanted || name_of(rule.rounding) == wanted ||
         rule.name == wanted;
}

void list_rules(Console& console, const std::string& wanted) {
  Json list = Json::array();
  Table table;
  for (const Rule& rule : rewrite_rules()) {
    if (!is_listed(rule, wanted)) continue;
    list.push_back({{"name", rule.name},
                    {"class", name_of(rule.rule_class)},
                    {"rounding", name_of(rule.rounding)},
                    {"rule", rule.summary},
                    {"when", rule.when}});
    table.row({std::string(rule.name), std::string(name_of(rule.rule_class)), std::string(name_of(rule.rounding)),
               rule.when.empty() ? std::string(rule.summary) : fmt::format("{}   when {}", rule.summary, rule.when)});
  }
  require(!list.empty(), "WHICH: expected a class, a rounding class or a rule's name, found {}", quote(wanted));
  const std::size_t count = list.size();
  if (console.json()) return console.write_json({{"rules", list}});
  console.print("{}{} rules\n", table.to_string(), count);
}

}  // namespace

Verb verb() {
  return {"rules", "list the rewrite rules of graphs",
          "  cermet rules\n"
          "  cermet rules associative\n"
          "  cermet rules fast --json",
          [](Parser& parser) -> Action {
            const auto wanted = std::make_shared<std::string>();
            parser.option("WHICH", *wanted,
                          "rules of a class (associative, raising, ..), of a rounding class (exact, strict, fast), or "
                          "one by its name");
            return [wanted](Console& console) { list_rules(console, *wanted); };
          }};
}

}  // namespace cermet::cli::rules_verb
