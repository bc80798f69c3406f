#include "kernel/cuda/gemm/gate_cut.hpp"

#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/measured_apart.hpp"

namespace cermet::cuda {

// 3.5 and 4.3 % slower than apart on an H200: docs/notes/gemm-cuda.md, "The gate of stacked weights".
std::size_t gate_cut(const Region& region) {
  if (!gate_after(region) || !Product(region, GeneralProduct::loops).blocked) return 0;
  return HopperProduct::declines(region) ? 0 : measured_apart;
}

}  // namespace cermet::cuda
