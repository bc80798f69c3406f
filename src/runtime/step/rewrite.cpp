#include "graph/rewrite/rule.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::rewrite(Compilation& c) {
  const FusionOptions& options = c.options.fusion;
  std::vector<Rule> rules;
  std::ranges::copy_if(options.rules ? std::span<const Rule>(*options.rules) : rewrite_rules(), std::back_inserter(rules),
                       [&](const Rule& rule) { return applies(options.mode, rule); });
  RewriteTrace trace;
  if (options.changes) trace.limit = options.changes->left();
  Rewritten rewritten =
      cermet::rewrite(c.graph(), rules, options.rounding == Rounding::fast ? RoundingClass::fast : RoundingClass::strict, options.changes ? &trace : nullptr);
  c.state->graph = std::move(rewritten.graph);
  for (RuleApplication& made : trace.applied) options.changes->made.push_back({std::string(made.rule), std::move(made.at), {}});
  std::string note;
  for (const RuleCount& count : rewritten.counts) note += fmt::format("{}{} {}", note.empty() ? "" : ", ", count.name, count.times);
  c.rules = std::move(rewritten.counts);
  return note.empty() ? "no rule fits" : note;
}

}  // namespace cermet
