// What the operators on a mixture of experts share: the attributes of gating, and the mixture itself for `moe` and
// `ep_moe`.
#pragma once

#include <functional>

#include "op/schema/infer.hpp"

namespace cermet {

struct OpSpec;

/// Attributes k, score, renormalize, groups, topk_groups, group_score and scale.
std::vector<AttributeSpec> gating_attributes();
/// Those of a problem that has them, for another operator that takes them.
Attributes gating_attributes_of(const Problem& problem);
/// Throws naming the attribute unless gating of `experts` experts is possible with them.
void check_gating(const Problem& problem, std::int64_t experts);

/// Operands of moe and ep_moe; from mixture_gate_up_scale on of ep_moe alone, whose experts may be quantized.
enum MixtureOperand : std::size_t {
  mixture_x,
  mixture_router,
  mixture_gate_up,
  mixture_down,
  mixture_bias,
  mixture_residual,
  mixture_gate_up_scale,
  mixture_down_scale,
  mixture_x_scale,
  mixture_hidden_scale
};
std::vector<OperandSpec> mixture_operands(std::string_view x_shape);
/// The same with those of quantized experts.
std::vector<OperandSpec> quantized_mixture_operands(std::string_view x_shape);
/// The gating attributes, activation and out_dtype.
std::vector<AttributeSpec> mixture_attributes();
/// `own` with the category, the costs and the rounding depth of a mixture.
OpSpec mixture_spec(OpSpec own);
/// Checks everything but the rank of x; returns the type of y.
/// `parts`: of the router's experts the operands have one in so many.
TensorType infer_mixture(const Problem& problem, std::int64_t parts = 1);
/// Checks the scales of quantized experts, and attribute hidden_dtype.
void check_mixture_scales(const Problem& problem);
/// Type that what the second weights multiply is rounded to: theirs where they are quantized, else attribute
/// hidden_dtype, f32 where there is none.
DType hidden_type(const Attributes& attributes, DType down);
/// Whether a weight, mixture_gate_up or mixture_down, is quantized, and so the rows that it multiplies.
inline bool is_quantized_weight(const Problem& problem, std::size_t weight) {
  return !dtypes::real.contains(problem.input(weight).dtype);
}

/// Of ep_moe: whether x is one rank's tokens, [T, H], and the experts its own; else those of all ranks, stacked.
inline bool takes_own_tokens(const Problem& problem) { return problem.input(mixture_x).rank() == 2; }

/// Computes y [.., H] of all tokens and gives the chosen experts to visit(token, expert).
void reference_mixture(const ReferenceCall& call,
                       const std::function<void(std::int64_t token, std::int64_t expert)>& visit);

double mixture_operations(const Problem& problem);
double mixture_bytes(const Problem& problem);
/// Longest chain of float32 roundings; reference_mixture notes magnitudes for it.
double mixture_depth_of(std::int64_t hidden, std::int64_t features, std::int64_t experts, std::int64_t k);
double mixture_rounding_depth(const Problem& problem);

}  // namespace cermet
