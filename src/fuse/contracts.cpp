#include "fuse/contracts.hpp"

namespace cermet {

bool relax(Region& region) {
  bool any = false;
  for (RegionNode& each : region.nodes) {
    for (std::size_t i = 0; i < each.inputs.size(); ++i) {
      if (each.inputs[i].rounding != Rounding::strict) continue;
      const DType dtype = each.problem.input(i).dtype;
      if (dtype != DType::f16 && dtype != DType::bf16) continue;
      each.inputs[i].rounding = Rounding::fast;
      any = true;
    }
  }
  return any;
}

void tighten(Region& region) {
  for (RegionNode& each : region.nodes)
    for (RegionInput& input : each.inputs)
      if (input.rounding == Rounding::fast) input.rounding = Rounding::strict;
}

}  // namespace cermet
