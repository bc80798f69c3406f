// Host half of silu_and_mul_quant and dequant_swiglu_quant: how their rows lie over threads.
#include "kernel/cuda/rowwise/region.hpp"

namespace cermet::cuda::rowwise_quant_gated_file {
namespace {

RowNeeds needs_of(const Problem& p) {
  const RowTuning tuning{.elements = size_of(p.input(0).dtype) == 2 ? 32 : 16};
  return {.width = vector_width({p.input(0).dtype}), .short_rows = tuning, .long_rows = tuning, .few_cluster = few_cluster(p.target)};
}

constexpr const char* const summary = "a row in registers from its halves to its quantized values";

}  // namespace

extern const Kernel rowwise_silu_and_mul_quant, rowwise_dequant_swiglu_quant;
const Kernel rowwise_silu_and_mul_quant = row_kernel("rowwise.silu_and_mul_quant", OpKind::silu_and_mul_quant, summary, needs_of);
const Kernel rowwise_dequant_swiglu_quant = row_kernel("rowwise.dequant_swiglu_quant", OpKind::dequant_swiglu_quant, summary, needs_of);

}  // namespace cermet::cuda::rowwise_quant_gated_file
