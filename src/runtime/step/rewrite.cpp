#include "graph/rewrite/rule.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::rewrite(Compilation& c) {
  Rewritten rewritten = cermet::rewrite(c.graph(), rewrite_rules(), c.options.rounding == Rounding::fast ? RoundingClass::fast : RoundingClass::strict);
  c.state->graph = std::move(rewritten.graph);
  std::string note;
  for (const RuleCount& count : rewritten.counts) note += fmt::format("{}{} {}", note.empty() ? "" : ", ", count.name, count.times);
  return note.empty() ? "no rule fits" : note;
}

}  // namespace cermet
