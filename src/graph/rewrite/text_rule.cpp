#include <algorithm>

#include "graph/rewrite/replace.hpp"
#include "graph/rewrite/replacement.hpp"

namespace cermet {
namespace {

/// Every node of the match goes: nothing else reads what is between them.
bool apply_text(const Rule& rule, GraphEditor& editor, NodeId anchor) {
  std::optional<Replacement> found;
  find_matches(rule.before, editor, anchor, [&](const Match& match) {
    found = replacement_of(rule, match, RoundingClass::fast, {});
    if (found && found->dying.size() != match.nodes.size()) found.reset();
    return found.has_value();
  });
  if (found) put_in(*found, editor, anchor);
  return found.has_value();
}

}  // namespace

Rule text_rule(std::string_view name, RoundingClass rounding, std::string_view text, bool (*fits)(const Match&),
               Attributes (*attributes)(const Match&)) {
  const std::size_t arrow = text.find(" -> ");
  CERMET_ASSERT(arrow != std::string_view::npos);
  Rule rule{.name = name, .summary = text, .rounding = rounding};
  rule.before = Pattern::parse(text.substr(0, arrow));
  rule.before.is_distinct = true;
  rule.after = Pattern::parse(text.substr(arrow + 4), &rule.before);
  rule.anchor = rule.before.nodes.back().op;
  rule.stage = 1;
  rule.apply = apply_text;
  rule.fits = fits;
  rule.attributes = attributes;
  return rule;
}

Rule algebra_rule(const AlgebraRow& row, RuleClass rule_class) {
  Rule rule = text_rule(row.name, row.rounding, row.text, row.fits, row.attributes);
  rule.stage = 0;
  rule.rule_class = rule_class;
  rule.when = row.when;
  rule.condition = Condition::parse(row.when, rule.before);
  rule.before.is_distinct = false;
  rule.apply = nullptr;
  return rule;
}

}  // namespace cermet
