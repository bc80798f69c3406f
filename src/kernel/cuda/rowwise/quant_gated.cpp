// Host half of silu_and_mul_quant and dequant_swiglu_quant: how their rows lie over threads.
#include "kernel/cuda/rowwise/row_region_kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::rowwise_quant_gated_file {
namespace {

/// Whether scale or offset of silu_and_mul_quant is a number for each column, held beside the row.
bool has_columns(const Problem& p) {
  constexpr std::size_t scale = op::silu_and_mul_quant::scale, offset = op::silu_and_mul_quant::offset;
  const auto is_vector = [&](std::size_t i) { return p.has(i) && p.input(i).rank() == 1; };
  return p.op->kind == OpKind::silu_and_mul_quant && (is_vector(scale) || is_vector(offset));
}

RowSpec spec_of(const Problem& p) {
  const bool scales_elements =
      p.op->kind == OpKind::dequant_swiglu_quant && p.input(1).rank() > 1;  // float32, loaded as rows are
  const bool is_old =
      p.target && p.target->compute_capability < 80;  // where 32 elements with numbers for their columns spill
  const bool is_narrow = size_of(p.input(0).dtype) == 2 && !scales_elements;
  const RowTuning tuning{.elements = is_narrow && !(is_old && has_columns(p)) ? 32 : 16};
  return {.width = vector_width({p.input(0).dtype, scales_elements ? DType::f32 : p.input(0).dtype}),
          .short_rows = tuning,
          .long_rows = tuning,
          .few_cluster = few_cluster(p.target)};
}

constexpr const char* const summary = "a row in registers from its halves to its quantized values";

}  // namespace

extern const Kernel rowwise_silu_and_mul_quant, rowwise_dequant_swiglu_quant;
const Kernel rowwise_silu_and_mul_quant =
    row_kernel("rowwise.silu_and_mul_quant", OpKind::silu_and_mul_quant, summary, spec_of);
const Kernel rowwise_dequant_swiglu_quant =
    row_kernel("rowwise.dequant_swiglu_quant", OpKind::dequant_swiglu_quant, summary, spec_of);

}  // namespace cermet::cuda::rowwise_quant_gated_file
