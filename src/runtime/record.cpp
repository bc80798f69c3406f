#include "runtime/record.hpp"

#include <algorithm>

#include "runtime/limits.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

BlockRecord block_of(const Region& region, const Choice& choice) {
  const DeviceLimits limits = limits_of(region.target());
  BlockRecord block{choice, 0, 0, cost_of(region)};
  block.least_seconds = modelled_time(region.problem(), block.work, limits).seconds();
  block.modelled_seconds = choice.kernel->cost ? choice.kernel->cost(region, choice.config, limits) : block.least_seconds;
  return block;
}

}  // namespace

CompileRecord record_of(const Compilation& c, std::size_t nodes_before, std::vector<CompileStep> steps) {
  CompileRecord record{.mode = c.options.fusion.mode,
                       .nodes_before = nodes_before,
                       .graph = c.graph(),
                       .groups = c.groups,
                       .views = c.views,
                       .blocks = {},
                       .rules = c.rules,
                       .report = {},
                       .maximum = c.options.maximum,
                       .memory = c.state->memory,
                       .steps = std::move(steps)};
  for (std::size_t step = 0; step < c.choices.size(); ++step) {
    record.blocks.push_back(block_of(c.region_of(step), c.choices[step]));
    record.workspace_bytes = std::max(record.workspace_bytes, c.workspace_of(step));
  }
  const auto declines = [](const Region& region) { return declines_of(region); };
  record.report = explain_fusion(c.graph(), c.options.maximum, c.groups, {record.mode, c.device.target(), c.views, declines});
  return record;
}

}  // namespace cermet
