#include "base/env.hpp"
#include "graph/rewrite/rule.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

RoundingClass wanted_rounding() {
  const std::string& wanted = env::value(env::Name::CERMET_ROUNDING);
  for (const RoundingClass rounding : {RoundingClass::exact, RoundingClass::strict, RoundingClass::fast})
    if (name_of(rounding) == wanted) return rounding;
  fail(Status::invalid_argument, "CERMET_ROUNDING: expected exact, strict or fast, found '{}'", wanted);
}

}  // namespace

std::string step::rewrite(Compilation& c) {
  const FusionOptions& options = c.options.fusion;
  const std::span<const Rule> all = options.rules ? std::span<const Rule>(*options.rules) : rewrite_rules();
  std::vector<Rule> chosen;
  if (options.mode != FusionMode::full)
    std::ranges::copy_if(all, std::back_inserter(chosen),
                         [&](const Rule& rule) { return applies(options.mode, rule); });
  RewriteTrace trace;
  if (options.changes) trace.limit = options.changes->left();
  const RoundingClass most =
      options.rounding == Rounding::fast ? std::max(RoundingClass::fast, wanted_rounding()) : wanted_rounding();
  Rewritten rewritten =
      cermet::rewrite(c.graph(), options.mode == FusionMode::full ? all : std::span<const Rule>(chosen),
                      {.most = most, .trace = options.changes ? &trace : nullptr});
  c.state->graph = std::move(rewritten.graph);
  for (RuleApplication& made : trace.applied)
    options.changes->made.push_back({std::string(made.rule), std::move(made.at), {}});
  std::string note;
  for (const RuleCount& count : rewritten.counts)
    note += fmt::format("{}{} {}", note.empty() ? "" : ", ", count.name, count.times);
  for (const RuleCount& count : rewritten.counts) {
    const auto known = std::ranges::find(c.rules, count.name, &RuleCount::name);
    if (known == c.rules.end()) c.rules.push_back(count);
    else known->times += count.times;
  }
  return note.empty() ? "no rule fits" : note;
}

/// Transpositions came only where the channels of an image were moved.
std::string step::rewrite_layouts(Compilation& c) { return c.moved_channels ? rewrite(c) : "no channels were moved"; }

}  // namespace cermet
