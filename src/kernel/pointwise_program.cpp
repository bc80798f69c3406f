// From a region of elementwise nodes alone to the steps of each place of its results.
#include "base/checked.hpp"
#include "kernel/region_views.hpp"
#include "kernel/step_builder.hpp"

namespace cermet {

TileProgramOrReason pointwise_program(const Region& region) {
  const Dims& tile = region.result_type(0).dims;
  const RegionViews views(region);
  const SeenAxes* axes = nullptr;  // of the node that is followed
  std::size_t rank = 0;
  StepBuilder steps(region, [&](const Dims& dims) { return broadcast_extent_of(seen(dims, *axes, rank), tile); });
  if (views.reason) return {{}, views.reason};
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const Problem& p = region.nodes[n].problem;
    const std::optional<std::size_t> outside = region.operand_of(n, 0);
    const bool is_view = p.op->kind == OpKind::reshape;
    axes = is_view && outside ? &views.operands[*outside] : &views.nodes[n];
    rank = is_view ? p.input(0).dims.size() : p.outputs[0].dims.size();
    if (is_view) steps.set(n, 0, steps.operand(n, 0));
    else if (p.op->kind == OpKind::where) steps.follow_choice(n);
    else if (p.op->kind == OpKind::gather && axes->empty()) steps.follow_gather(n);
    else if (StepBuilder::knows(p.op->kind)) steps.follow(n);
    else steps.fail(n, "no elementwise operator");
    if (steps.reason()) return steps.finish();
  }
  for (std::size_t i = 0; i < region.results.size(); ++i) {
    const RegionPlace& place = region.results[i];
    if (region.result_type(i).dims != tile)
      steps.fail(static_cast<std::size_t>(place.node), "its result has other dimensions than others of the region");
    const TileProgram::Source value =
        *steps.value(static_cast<std::size_t>(place.node), static_cast<std::size_t>(place.index));
    steps.program().results.push_back({i, value, region.result_type(i).dtype});
  }
  return steps.finish();
}

}  // namespace cermet
