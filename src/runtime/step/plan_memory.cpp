#include "runtime/memory_plan.hpp"

#include <algorithm>

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::plan_memory(Compilation& c) {
  BoundMemory& m = c.state->memory;
  m.layouts.resize(c.graph().values().size());  // all dense where views were not folded
  std::vector<bool> strided;
  for (const ValueLayout& layout : m.layouts) strided.push_back(!layout.is_dense());
  std::vector<std::int32_t> walk_of;
  for (std::size_t step = 0; step < c.groups.size(); ++step) {
    const bool overlaps = c.walked[step] && !goes_in_turn(*c.options_of(c.node_of(step)));
    walk_of.push_back(overlaps ? c.node_of(step).super_kernel : -1);
  }
  m.plan = cermet::plan_memory(c.graph(), c.groups, c.views, c.options.maximum, strided, walk_of, c.direct_updates);
  std::int64_t workspace = 0;
  for (std::size_t step = 0; step < c.choices.size(); ++step) workspace = std::max(workspace, c.workspace_of(step));
  m.arena = c.device.allocate(m.plan.bytes + workspace);
  m.workspace = workspace ? m.arena.data() + m.plan.bytes : nullptr;
  if (workspace && c.options.queue.stream) c.options.queue.stream->fill(m.workspace, 0, workspace);
  const MemoryPlan& plan = m.plan;
  return fmt::format("{} for values that take {} side by side (at least {}), {} of workspace", size_text(plan.bytes),
                     size_text(plan.total), size_text(plan.lower_bound), size_text(workspace));
}

}  // namespace cermet
