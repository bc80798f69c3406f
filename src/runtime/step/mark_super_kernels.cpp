#include "runtime/super_kernel/mark.hpp"

#include "runtime/step/compilation.hpp"

namespace cermet {

/// Before anything is rewritten: marks go where the user's nodes are, and rewriting keeps to their borders.
std::string step::mark_super_kernels(Compilation& c) {
  cermet::mark_super_kernels(c.state->graph, c.options.fusion.super_kernel);
  std::size_t marked = 0;
  for (const Node& node : c.graph().nodes()) marked += node.super_kernel >= 0 ? 1 : 0;
  return fmt::format("{} of {} nodes in {} super-kernels", marked, c.graph().nodes().size(),
                     c.graph().super_kernels().size());
}

}  // namespace cermet
