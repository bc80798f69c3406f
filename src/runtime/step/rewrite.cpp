#include "base/env.hpp"
#include "graph/rewrite/rule.hpp"
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
  Rewritten rewritten = cermet::rewrite(c.graph(), rewrite_rules(), wanted_rounding());
  c.state->graph = std::move(rewritten.graph);
  std::string note;
  for (const RuleCount& count : rewritten.counts) note += fmt::format("{}{} {}", note.empty() ? "" : ", ", count.name, count.times);
  return note.empty() ? "no rule fits" : note;
}

}  // namespace cermet
