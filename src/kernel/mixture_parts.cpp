#include "kernel/mixture_parts.hpp"

#include "op/infer.hpp"
#include "op/mixture.hpp"

namespace cermet {
namespace {

Problem make_part(const Problem& whole, OpKind kind, std::vector<std::optional<TensorType>> inputs, const Attributes& attributes,
                  bool constant_weight = false) {
  Problem part = make_problem(definition(kind), std::move(inputs), attributes);
  part.constant_inputs = constant_weight ? 2 : 0;
  part.maximum = whole.maximum;
  part.target = whole.target;
  return part;
}

}  // namespace

std::array<Problem, mixture_part_count> mixture_parts(const Problem& p) {
  const Dim hidden = dim_of(p, mixture_x, -1), tokens = product(p.input(mixture_x).dims).divided_by(hidden.constant());
  const Dim experts = dim_of(p, mixture_router, 0), rows = dim_of(p, mixture_gate_up, 1);
  const std::int64_t k = p.attributes.integer("k");
  const bool own = p.op->kind == OpKind::ep_moe && takes_own_tokens(p);
  const Dim held = dim_of(p, mixture_gate_up, 0), received = tokens * k * (own ? p.attributes.integer("ranks") : 1);
  const DType dtype = p.input(mixture_x).dtype;
  const TensorType x{dtype, {tokens, hidden}}, sorted{dtype, {received, hidden}};
  const TensorType pairs{DType::i32, {tokens, k}}, weights{DType::f32, {tokens, k}}, offsets{DType::i32, {held + 1}};
  const auto f32 = [](Dims dims) { return TensorType{DType::f32, std::move(dims)}; };
  const Attributes to_f32{{"out_dtype", "f32"}}, to_y{{"out_dtype", std::string(name_of(p.outputs[0].dtype))}};
  const std::optional<TensorType> bias = p.has(mixture_bias) ? p.inputs[mixture_bias] : std::nullopt;
  std::optional<TensorType> residual = p.has(mixture_residual) ? p.inputs[mixture_residual] : std::nullopt;
  if (residual) residual->dims = x.dims;
  return {make_part(p, OpKind::linear, {x, p.input(mixture_router)}, to_f32, p.is_constant(mixture_router)),
          make_part(p, OpKind::topk_gating, {f32({tokens, experts}), bias}, gating_attributes_of(p)),
          make_part(p, OpKind::moe_permute, {x, pairs}, {{"experts", experts.constant()}}),
          make_part(p, OpKind::grouped_linear, {sorted, p.input(mixture_gate_up), offsets}, to_f32, p.is_constant(mixture_gate_up)),
          make_part(p, OpKind::grouped_linear, {f32({received, rows.divided_by(2)}), p.input(mixture_down), offsets}, to_f32, p.is_constant(mixture_down)),
          make_part(p, OpKind::moe_unpermute, {f32({tokens * k, hidden}), pairs, weights, residual}, to_y)};
}

}  // namespace cermet
