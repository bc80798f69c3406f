#include "kernel/mixture_parts.hpp"

#include <algorithm>

#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

namespace cermet {
namespace {

Problem make_part(const Problem& whole, OpKind kind, std::vector<std::optional<TensorType>> inputs,
                  const Attributes& attributes, bool constant_weight = false) {
  Problem part = make_problem(definition(kind), std::move(inputs), attributes);
  part.constant_inputs = constant_weight ? 2 : 0;
  part.maximum = whole.maximum;
  part.target = whole.target;
  return part;
}

/// A grouped product in float32 of rows that are x, quantized where the weight is.
Problem make_product(const Problem& whole, MixtureOperand weight, MixtureOperand scale, MixtureOperand row_scale,
                     TensorType x, const TensorType& offsets) {
  std::vector<std::optional<TensorType>> inputs{x, whole.input(weight), offsets};
  if (is_quantized_weight(whole, weight)) {
    inputs[0]->dtype = whole.input(weight).dtype;
    const TensorType rows{DType::f32, whole.has(row_scale) ? Dims{} : Dims{x.dims[0]}};
    inputs.insert(inputs.end(), {std::nullopt, rows, whole.input(scale)});
  } else if (weight == mixture_down) {
    inputs[0]->dtype = hidden_type(whole.attributes, whole.input(weight).dtype);
  }
  return make_part(whole, OpKind::grouped_linear, std::move(inputs), {{"out_dtype", "f32"}}, whole.is_constant(weight));
}

std::optional<Problem> make_quantizer(const Problem& whole, MixtureOperand weight, MixtureOperand row_scale,
                                      TensorType rows) {
  const bool quantizes = is_quantized_weight(whole, weight);
  const DType code = quantizes                ? whole.input(weight).dtype
                     : weight == mixture_down ? hidden_type(whole.attributes, whole.input(weight).dtype)
                                              : rows.dtype;
  if (code == rows.dtype) return std::nullopt;
  Attributes attributes{{"out_dtype", std::string(name_of(code))}};
  if (!quantizes) return make_part(whole, OpKind::cast, {std::move(rows)}, attributes);
  if (whole.has(row_scale))
    return make_part(whole, OpKind::quantize, {std::move(rows), whole.input(row_scale)}, attributes);
  if (code == DType::i8) attributes.set("range", std::string(whole.attributes.text("range")));
  return make_part(whole, OpKind::dynamic_quant, {std::move(rows)}, attributes);
}

bool is_of_one_rank(const Problem& p) { return p.op->kind == OpKind::ep_moe && takes_own_tokens(p); }

/// Rows of the products.
Dim product_rows(const Problem& p) {
  const Dim tokens = product(p.input(mixture_x).dims).divided_by(dim_of(p, mixture_x, -1).constant());
  return tokens * (is_of_one_rank(p) ? exchanged_rows_per_token(p) : p.attributes.integer("k"));
}

}  // namespace

std::int64_t exchanged_rows_per_token(const Problem& p) {
  const std::int64_t k = p.attributes.integer("k"), held = p.size(mixture_gate_up, 0);
  return std::max(k, p.attributes.integer("ranks") * std::min(k, held));
}

MixturePart part_of_weight(std::size_t operand) {
  if (operand == mixture_router) return part_router;
  if (operand == mixture_gate_up) return part_gate_up;
  return operand == mixture_down ? part_down : mixture_part_count;
}

MixtureQuantizers mixture_quantizers(const Problem& p) {
  const TensorType& x = p.input(mixture_x);
  const Dim hidden = x.dims.back(), features = dim_of(p, mixture_down, 2);
  return {make_quantizer(p, mixture_gate_up, mixture_x_scale,
                         {x.dtype, {product(x.dims).divided_by(hidden.constant()), hidden}}),
          make_quantizer(p, mixture_down, mixture_hidden_scale, {DType::f32, {product_rows(p), features}})};
}

std::array<Problem, mixture_part_count> mixture_parts(const Problem& p) {
  const Dim hidden = dim_of(p, mixture_x, -1), tokens = product(p.input(mixture_x).dims).divided_by(hidden.constant());
  const Dim experts = dim_of(p, mixture_router, 0), features = dim_of(p, mixture_down, 2);
  const std::int64_t k = p.attributes.integer("k");
  const Dim held = dim_of(p, mixture_gate_up, 0), received = product_rows(p);
  const DType dtype = p.input(mixture_x).dtype;
  const TensorType x{dtype, {tokens, hidden}},
      sent{is_quantized_weight(p, mixture_gate_up) ? p.input(mixture_gate_up).dtype : dtype, {tokens, hidden}};
  const TensorType pairs{DType::i32, {tokens, k}}, weights{DType::f32, {tokens, k}}, offsets{DType::i32, {held + 1}};
  const auto f32 = [](Dims dims) { return TensorType{DType::f32, std::move(dims)}; };
  const Attributes to_f32{{"out_dtype", "f32"}}, to_y{{"out_dtype", std::string(name_of(p.outputs[0].dtype))}};
  const std::optional<TensorType> bias = p.has(mixture_bias) ? p.inputs[mixture_bias] : std::nullopt;
  std::optional<TensorType> residual = p.has(mixture_residual) ? p.inputs[mixture_residual] : std::nullopt;
  if (residual) residual->dims = x.dims;
  return {
      make_part(p, OpKind::linear, {x, p.input(mixture_router)}, to_f32, p.is_constant(mixture_router)),
      make_part(p, OpKind::topk_gating, {f32({tokens, experts}), bias}, gating_attributes_of(p)),
      make_part(p, OpKind::moe_permute, {sent, pairs}, {{"experts", experts.constant()}}),
      make_product(p, mixture_gate_up, mixture_gate_up_scale, mixture_x_scale, {dtype, {received, hidden}}, offsets),
      make_product(p, mixture_down, mixture_down_scale, mixture_hidden_scale, f32({received, features}), offsets),
      make_part(p, OpKind::moe_unpermute, {f32({tokens * k, hidden}), pairs, weights, residual}, to_y)};
}

}  // namespace cermet
