#include "kernel/cpu/before_anchor.hpp"

#include <algorithm>

#include "kernel/cpu/kernels.hpp"

namespace cermet::cpu {

PartBeforeAnchor part_before_anchor(const Region& region) {
  PartBeforeAnchor part;
  const std::size_t count = static_cast<std::size_t>(region.anchor);
  const RegionInput& read = region.nodes[count].inputs[0];
  if (count == 1) {  // in the schema's order
    part.region = Region(region.nodes[0].problem);
    for (std::size_t i = 0; i < region.nodes[0].problem.inputs.size(); ++i)
      part.operands.push_back(region.operand_of(0, i));
  } else {
    part.region.anchor = static_cast<std::int32_t>(count - 1);
    part.region.nodes.assign(region.nodes.begin(), region.nodes.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t i = 0; i < part.region.nodes[n].inputs.size(); ++i) {
        RegionInput& input = part.region.nodes[n].inputs[i];
        if (input.from != RegionInput::From::outside) continue;
        const auto known = std::ranges::find(part.operands, std::optional(static_cast<std::size_t>(input.index)));
        const auto index = static_cast<std::size_t>(known - part.operands.begin());
        if (known == part.operands.end()) {
          part.operands.emplace_back(static_cast<std::size_t>(input.index));
          part.region.operands.push_back({static_cast<std::int32_t>(n), static_cast<std::int32_t>(i)});
        }
        input = RegionInput::outside(index);
      }
  }
  part.region.results = {{read.index, read.output}};
  for (std::size_t r = 0; r < region.results.size(); ++r) {
    if (region.results[r].node >= region.anchor) continue;
    part.region.results.push_back(region.results[r]);
    part.results.push_back(r);
  }
  return part;
}

const Kernel* kernel_without_workspace(const Region& region) {
  for (const Kernel* kernel : kernels_of(region.problem().op->kind))
    if ((region.is_single() || kernel->fuses) && !kernel->declines(region) && kernel->workspace(region, 1) == 0)
      return kernel;
  return nullptr;
}

}  // namespace cermet::cpu
