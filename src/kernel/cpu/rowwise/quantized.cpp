// Norms and gates with their quantization: what they do is their row program.
#include "kernel/cpu/rowwise/row_kernel.hpp"

namespace cermet::cpu {

constexpr const char* const norm_summary =
    "a pass for the norm, one for the values, which are then quantized; rows spread over threads";
constexpr const char* const gate_summary = "a pass for the values, which are then quantized; rows spread over threads";

extern const Kernel rowwise_rms_norm_quant, rowwise_add_rms_norm_quant, rowwise_silu_and_mul_quant,
    rowwise_dequant_swiglu_quant;
const Kernel rowwise_rms_norm_quant = row_kernel("rowwise.rms_norm_quant", OpKind::rms_norm_quant, norm_summary);
const Kernel rowwise_add_rms_norm_quant =
    row_kernel("rowwise.add_rms_norm_quant", OpKind::add_rms_norm_quant, norm_summary);
const Kernel rowwise_silu_and_mul_quant =
    row_kernel("rowwise.silu_and_mul_quant", OpKind::silu_and_mul_quant, gate_summary);
const Kernel rowwise_dequant_swiglu_quant =
    row_kernel("rowwise.dequant_swiglu_quant", OpKind::dequant_swiglu_quant, gate_summary);

}  // namespace cermet::cpu
