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
  block.modelled_seconds =
      choice.kernel->cost ? choice.kernel->cost(region, choice.config, limits) : block.least_seconds;
  return block;
}

/// What the programs of the chosen kernels would launch.
Plan launches_of(const Compilation& c) {
  Plan plan;
  for (std::size_t step = 0; step < c.choices.size(); ++step) {
    plan.begin_step(step);
    if (!c.choices[step].kernel->programs) plan.add_call();
    else if (c.programs_of(step).empty()) plan.add_product({});
    else
      for (const cuda::Program& program : c.programs_of(step)) {
        Launch launch;
        launch.items = 1;
        launch.shape.cluster = static_cast<std::uint32_t>(program.cluster);
        launch.shape.shared_bytes = static_cast<std::uint32_t>(program.shared_bytes);
        plan.add_program(launch, {});
      }
  }
  return plan;
}

void add_super_kernels(CompileRecord& record, const Compilation& c) {
  if (!c.state->super) return;
  const SuperFormation formation =
      form_regions(launches_of(c), c.state->super->steps, c.graph().super_kernels(), c.state->super->limits);
  std::vector<bool> has_workspace;
  for (std::size_t step = 0; step < c.choices.size(); ++step) has_workspace.push_back(c.workspace_of(step) > 0);
  const SuperBlocks blocks{record.graph, record.groups, record.views, record.memory, record.maximum, has_workspace};
  for (const SuperRegion& region : formation.regions) {
    record.super_kernels.push_back(
        {std::string(region.name), to_string(region.options), region.first_step, region.last_step});
    for (std::size_t step = region.first_step; step <= region.last_step; ++step)
      if (c.state->steps[step].communicator) record.super_kernels.back().collectives.push_back(step);
    record.super_kernels.back().waits = waits_of(blocks, region.first_step, region.last_step);
  }
  for (const SuperBreak& found : formation.breaks)
    record.super_breaks.push_back(
        fmt::format("{} breaks at {}", found.name, text_of(found, c.node_of(found.step).scope)));
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
                       .memory = c.state->memory.plan,
                       .steps = std::move(steps)};
  for (std::size_t step = 0; step < c.choices.size(); ++step) {
    record.blocks.push_back(block_of(c.region_of(step), c.choices[step]));
    record.workspace_bytes = std::max(record.workspace_bytes, c.workspace_of(step));
  }
  const auto declines = [](const Region& region) { return declines_of(region); };
  add_super_kernels(record, c);
  record.report =
      explain_fusion(c.graph(), c.options.maximum, c.groups, {record.mode, c.device.target(), c.views, declines});
  return record;
}

}  // namespace cermet
