#include "kernel/cuda/gemm/gate_cut.hpp"

#include "kernel/cuda/gemm/hopper.hpp"

namespace cermet::cuda {

// 3.5 and 4.3 % slower than apart on an H200: docs/notes/gemm-cuda.md, "The gate of stacked weights".
RegionCut gate_cut(const Region& region) {
  if (!gate_after(region) || !Product(region, GeneralProduct::loops).blocked) return {};
  return {HopperProduct::declines(region) ? RegionCut::Rule::none : RegionCut::Rule::separate};
}

}  // namespace cermet::cuda
