#include "fuse/plan.hpp"

#include "runtime/step/compilation.hpp"
#include "select/select.hpp"

namespace cermet {

std::string step::fuse(Compilation& c) {
  const Target* const target = c.device.target();
  c.groups = plan_fusion(c.graph(), c.options.maximum, target,
                         {[&](OpKind anchor) { return fuses(anchor, target); }, [](const Region& region) { return is_taken(region); }}, c.options.rounding);
  return fmt::format("{} nodes in {} groups", c.graph().nodes().size(), c.groups.size());
}

}  // namespace cermet
