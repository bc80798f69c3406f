// Host half of rms_norm_quant and add_rms_norm_quant: how their rows lie over threads.
#include "op/norm_quant.hpp"
#include "kernel/cuda/rowwise/row_region_kernel.hpp"

namespace cermet::cuda::rowwise_norm_quant_file {
namespace {

RowSpec spec_of(const Problem& p) {
  const bool add = p.op->kind == OpKind::add_rms_norm_quant;
  const NormQuantOperands operands(add ? 2 : 1);
  const QuantizedFormat format = quantized_format(p.attributes);
  const bool at_once =
      !p.has(operands.scale) && format.group == 0 && !format.asymmetric;  // both statistics of a row take one reduction
  RowSpec spec{.width = vector_width({p.input(0).dtype, p.input(add ? 1 : 0).dtype}),
               .keep = true,
               .few_cluster = at_once ? few_cluster(p.target) : 1};
  spec.short_rows.registers = spec.long_rows.registers = 96;
  if (spec.width == 8 && !p.has(operands.smooth)) {
    spec.short_rows =
        at_once ? RowTuning{.elements = 32, .registers = add ? 80 : 72} : RowTuning{.elements = 64, .registers = 160};
    spec.long_rows =
        add || !at_once ? RowTuning{.elements = 32, .registers = 72} : RowTuning{.elements = 56, .registers = 80};
  }
  return spec;
}

constexpr const char* const summary = "a row in registers from its first load to its quantized values";

}  // namespace

extern const Kernel rowwise_rms_norm_quant, rowwise_add_rms_norm_quant;
const Kernel rowwise_rms_norm_quant = row_kernel("rowwise.rms_norm_quant", OpKind::rms_norm_quant, summary, spec_of);
const Kernel rowwise_add_rms_norm_quant =
    row_kernel("rowwise.add_rms_norm_quant", OpKind::add_rms_norm_quant, summary, spec_of);

}  // namespace cermet::cuda::rowwise_norm_quant_file
