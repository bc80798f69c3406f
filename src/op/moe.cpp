#include "op/mixture.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::moe_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, mixture_x, 2);
  return {infer_mixture(p), {DType::i32, {dim_of(p, mixture_router, 0)}}};
}

void reference(const ReferenceCall& call) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(call.inputs[mixture_router].shape[0]));
  reference_mixture(call, [&](std::int64_t, std::int64_t expert) { ++load[static_cast<std::size_t>(expert)]; });
  for (std::size_t e = 0; e < load.size(); ++e)
    store(call.outputs[1], static_cast<std::int64_t>(e), static_cast<double>(load[e]));
}

struct Sizes {
  std::int64_t tokens = 7, hidden = 24, features = 17, experts = 6, k = 2;
  DType x = DType::f32, weight = DType::f32;
  bool constant = true;
};

Case make_case(std::string name, const Sizes& s, Attributes attributes = {}) {
  attributes.set("k", s.k);
  const auto weight = [&](Dims dims, double deviation) {
    return CaseOperand{{s.weight, std::move(dims)}, normal(deviation), 0, s.constant};
  };
  return {std::move(name),
          {CaseOperand{{s.x, {s.tokens, s.hidden}}, normal(), 3}, weight({s.experts, s.hidden}, 0.3),
           weight({s.experts, 2 * s.features, s.hidden}, 0.2), weight({s.experts, s.hidden, s.features}, 0.3)},
          std::move(attributes)};
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType x : {DType::f32, DType::bf16, DType::f16})
    for (DType weight : {DType::f32, DType::bf16, DType::f16})
      list.push_back(make_case(fmt::format("{}_{}", name_of(x), name_of(weight)), {.x = x, .weight = weight}));
  list.push_back(make_case("not_constant", {.weight = DType::bf16, .constant = false}));
  list.push_back(make_case("one_token", {.tokens = 1, .experts = 16, .k = 4}));
  list.push_back(make_case("one_expert", {.experts = 1, .k = 1}));
  list.push_back(make_case("all_experts", {.experts = 3, .k = 3}, {{"renormalize", false}}));
  list.push_back(make_case("residual", {.x = DType::bf16}, {{"out_dtype", "f32"}}));
  list.back().inputs.resize(mixture_residual);
  list.back().inputs.push_back(CaseOperand{{DType::f32, {7, 24}}, normal(), 2});
  list.push_back(
      make_case("deepseek", {.tokens = 12, .experts = 16, .k = 4},
                {{"score", "sigmoid"}, {"groups", std::int64_t{4}}, {"topk_groups", std::int64_t{2}}, {"scale", 2.5}}));
  list.back().inputs.push_back(CaseOperand{{DType::f32, {16}}, normal(0.3)});
  for (const std::string_view activation : {"gelu", "gelu_tanh", "relu"})
    list.push_back(make_case(std::string(activation), {.tokens = 3}, {{"activation", std::string(activation)}}));
  list.push_back(make_case("no_tokens", {.tokens = 0}));
  list.push_back(make_case("no_features", {.tokens = 2, .features = 0}));
  return list;
}

}  // namespace

OpSpec define() {
  return mixture_spec({
      .summary = "A whole mixture of experts: router, choice, experts, weighted sum",
      .semantics = "logits = x router^T in float32; weights and ids = topk_gating(logits, bias); every token's row "
                   "goes through each of its k experts, "
                   "(activation(x gate^T) * (x up^T)) down^T, and y = sum_j weights[j] * result_j (+ residual), in the "
                   "order of j. Everything between x and y is "
                   "float32; one "
                   "rounding at the end. `load` counts the tokens of each expert, for balance.",
      .inputs = mixture_operands("[T, H]"),
      .outputs = {{"y", dtypes::real, "[T, H]", "tokens"}, {"load", {DType::i32}, "[E]", "tokens per expert"}},
      .attributes = mixture_attributes(),
      .infer = infer,
      .reference = reference,
      .cases = cases,
  });
}

}  // namespace cermet::moe_op
