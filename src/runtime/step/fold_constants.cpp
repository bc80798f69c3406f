#include "graph/fold_constants.hpp"

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::fold_constants(Compilation& c) {
  FoldedConstants folded = cermet::fold_constants(c.graph());
  c.state->graph = std::move(folded.graph);
  std::string note = fmt::format("{} nodes became constants", folded.nodes);
  for (const std::string& left : folded.left) note += fmt::format("; left in runs: {}", left);
  return note;
}

}  // namespace cermet
