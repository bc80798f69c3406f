// From a region of elementwise nodes alone to the steps of each place of its results.
#include "base/checked.hpp"
#include "kernel/step_builder.hpp"

namespace cermet {

TileProgramOrReason pointwise_program(const Region& region) {
  const Dims& tile = region.result_type(0).dims;
  StepBuilder steps(region, [&tile](const Dims& dims) { return broadcast_extent_of(dims, tile); });
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    if (StepBuilder::knows(region.nodes[n].problem.op->kind)) steps.follow(n);
    else steps.fail(n, "no elementwise operator");
    if (steps.reason()) return steps.finish();
  }
  for (std::size_t i = 0; i < region.results.size(); ++i) {
    const RegionPlace& place = region.results[i];
    if (region.result_type(i).dims != tile) steps.fail(static_cast<std::size_t>(place.node), "its result has other dimensions than others of the region");
    const TileProgram::Source value = *steps.value(static_cast<std::size_t>(place.node), static_cast<std::size_t>(place.index));
    steps.program().results.push_back({i, value, region.result_type(i).dtype});
  }
  return steps.finish();
}

}  // namespace cermet
