#include "fuse/prologue.hpp"
#include "runtime/step/compilation.hpp"
#include "select/select.hpp"

namespace cermet {

std::string step::fuse(Compilation& c) {
  c.groups = plan_fusion(c.graph());
  if (c.device.target())
    c.groups = fuse_prologues(c.graph(), std::move(c.groups),
                              [&](const Node& first, const Node& product) { return explain_selection(c.problem_of(product, &first)).kernel != nullptr; });
  return fmt::format("{} nodes in {} groups", c.graph().nodes().size(), c.groups.size());
}

}  // namespace cermet
