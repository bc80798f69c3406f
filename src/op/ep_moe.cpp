#include "op/mixture.hpp"
#include "op/quantization.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::ep_moe_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const std::int64_t ranks = p.attributes.integer("ranks");
  if (ranks < 1 || ranks > 1 << 16) bad_attribute(p, "ranks", "1 to 65536");
  const bool own = takes_own_tokens(p);
  if (!own) expect_rank(p, mixture_x, 3);
  if (!own) expect_dim(p, mixture_x, 0, ranks, "attribute ranks");
  const TensorType y = infer_mixture(p, own ? ranks : 1);
  check_mixture_scales(p);
  const bool has_int8 = p.input(mixture_gate_up).dtype == DType::i8 || p.input(mixture_down).dtype == DType::i8;
  if (!has_int8 && p.attributes.text("range") != "127") bad_attribute(p, "range", "\"127\" without int8");
  const Dim experts = dim_of(p, mixture_router, 0);
  if (experts.constant() % ranks != 0)
    bad_attribute(p, "ranks", fmt::format("a divisor of the {} experts", experts.to_string()));
  return {y, {DType::i32, {experts}}, {DType::i32, {ranks, ranks}}};
}

void reference(const ReferenceCall& call) {
  const std::int64_t ranks = call.attributes.integer("ranks"), experts = call.inputs[mixture_router].shape[0];
  const TensorView& x = call.inputs[mixture_x];
  if (x.shape.rank() == 2 && ranks > 1)
    fail(Status::unsupported, "ep_moe of one of {} ranks: expected a communicator, which joins them, found one process",
         ranks);
  const std::int64_t tokens = x.shape[x.shape.rank() - 2], experts_each = experts / ranks;
  std::vector<std::int64_t> load(static_cast<std::size_t>(experts)), dispatch(static_cast<std::size_t>(ranks * ranks));
  reference_mixture(call, [&](std::int64_t token, std::int64_t expert) {
    ++load[static_cast<std::size_t>(expert)];
    ++dispatch[static_cast<std::size_t>(token / tokens * ranks + expert / experts_each)];
  });
  for (std::size_t i = 0; i < load.size(); ++i)
    store(call.outputs[1], static_cast<std::int64_t>(i), static_cast<double>(load[i]));
  for (std::size_t i = 0; i < dispatch.size(); ++i)
    store(call.outputs[2], static_cast<std::int64_t>(i), static_cast<double>(dispatch[i]));
}

Case make_case(std::string name, std::int64_t ranks, std::int64_t tokens, std::int64_t experts, DType x, DType weight,
               Attributes attributes = {}) {
  constexpr std::int64_t hidden = 24, features = 9;
  attributes.set("ranks", ranks);
  attributes.set("k", std::int64_t{2});
  return {std::move(name),
          {CaseOperand{{x, {ranks, tokens, hidden}}, normal(), 3},
           CaseOperand{{weight, {experts, hidden}}, normal(0.3), 0, true},
           CaseOperand{{weight, {experts, 2 * features, hidden}}, normal(0.2), 0, true},
           CaseOperand{{weight, {experts, hidden, features}}, normal(0.3), 0, true}},
          std::move(attributes)};
}

/// Experts quantized to `weight`; static scales of x and of the hidden elements where they are not 0.
Case make_quantized_case(std::string name, DType weight, double x_scale, double hidden_scale,
                         Attributes attributes = {}) {
  Case made = make_case(std::move(name), 2, 4, 4, DType::f32, DType::f32, std::move(attributes));
  const Fill quantized = weight == DType::i8 ? integers(-128, 127) : normal();
  for (const std::size_t operand : {mixture_gate_up, mixture_down})
    made.inputs[operand] = CaseOperand{{weight, made.inputs[operand]->type.dims}, quantized, 0, true};
  made.inputs.resize(mixture_hidden_scale + 1);
  const Fill scales = weight == DType::i8 ? uniform(0.001, 0.004) : uniform(0.1, 0.3);
  made.inputs[mixture_gate_up_scale] = CaseOperand{{DType::f32, {4, 18}}, scales, 0, true};
  made.inputs[mixture_down_scale] = CaseOperand{{DType::f32, {4, 24}}, scales, 0, true};
  if (x_scale > 0) made.inputs[mixture_x_scale] = CaseOperand{{DType::f32, {}}, constant(x_scale)};
  if (hidden_scale > 0) made.inputs[mixture_hidden_scale] = CaseOperand{{DType::f32, {}}, constant(hidden_scale)};
  return made;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const std::int64_t ranks : {1, 2, 4})
    list.push_back(make_case(fmt::format("ranks{}", ranks), ranks, 5, 8, DType::f32, DType::f32));
  list.push_back(make_case("bf16", 2, 5, 6, DType::bf16, DType::bf16, {{"out_dtype", "f32"}}));
  list.push_back(make_case("an_expert_each", 8, 3, 8, DType::f16, DType::f16));
  list.push_back(make_case("residual_bias", 2, 4, 4, DType::f32, DType::f32, {{"score", "sigmoid"}}));
  list.back().inputs.push_back(CaseOperand{{DType::f32, {4}}, normal(0.3)});
  list.back().inputs.push_back(CaseOperand{{DType::f32, {2, 4, 24}}});
  list.push_back(make_case("no_tokens", 2, 0, 4, DType::f32, DType::f32));
  list.push_back(
      make_case("bf16_hidden", 2, 5, 4, DType::bf16, DType::bf16, {{"out_dtype", "f32"}, {"hidden_dtype", "bf16"}}));
  list.push_back(make_quantized_case("i8", DType::i8, 0, 0));
  list.push_back(make_quantized_case("i8_static_range", DType::i8, 0.03, 0, {{"range", "127.5"}}));
  list.push_back(make_quantized_case("fp8", DType::f8_e4m3, 0, 0.01));
  list.push_back(make_quantized_case("i8_first", DType::i8, 0, 0));
  list.back().inputs[mixture_down] = CaseOperand{{DType::bf16, {4, 24, 9}}, normal(0.3), 0, true};
  list.back().inputs[mixture_down_scale].reset();
  list.push_back(make_quantized_case("fp8_second", DType::f8_e4m3, 0, 0));
  list.back().inputs[mixture_gate_up] = CaseOperand{{DType::f16, {4, 18, 24}}, normal(0.2), 0, true};
  list.back().inputs[mixture_gate_up_scale].reset();
  list.push_back(make_case("own_tokens", 1, 5, 4, DType::f32, DType::f32, {{"group", "model"}}));
  list.back().inputs[mixture_x]->type.dims = {5, 24};
  return list;
}

}  // namespace

OpSpec define() {
  std::vector<AttributeSpec> attributes = mixture_attributes();
  attributes.push_back({"ranks", std::int64_t{1}, "ranks R that the experts are spread over"});
  attributes.push_back(
      {"hidden_dtype", std::string(), "type that what real second weights multiply is rounded to; f32 where empty"});
  attributes.push_back(range_attribute());
  attributes.push_back({"overlap", false,
                        "where x is a rank's own: half of its rows is on its way while the other half is computed; "
                        "results are the same"});
  attributes.push_back(
      {"group", std::string(),
       "where x is a rank's own: the communicator, by the name under which the graph's user gives it"});
  return mixture_spec({
      .summary = "A mixture whose experts are spread over ranks: dispatch, experts, combine",
      .semantics = "A collective, written as a function of every rank's operands stacked along the first axis: x[r] "
                   "are the tokens of rank r, and rank r owns the "
                   "experts "
                   "r E / R .. (r + 1) E / R - 1; the router is the same everywhere. Each rank sends every token's row "
                   "to the ranks of its k experts, these compute and "
                   "send the "
                   "results back, and y[r] is what moe gives for the tokens x[r]. dispatch[i, j] counts the rows that "
                   "rank i sends to rank j; load counts the rows of "
                   "each expert. "
                   "Where x is [T, H], it is one rank's tokens, of which ranks may have different numbers; gate_up and "
                   "down are its E / R experts, and y is y[r]. load "
                   "and "
                   "dispatch are the same on every rank. Experts may be quantized with a scale for each row: x and "
                   "what the second weights multiply are then rounded to "
                   "float32 and quantized to the weights' type, per token or with the static scale that is given. "
                   "Stacked, the CPU kernel runs all ranks in one memory, "
                   "where sorting by expert is the exchange.",
      .inputs = quantized_mixture_operands("[R, T, H] or [T, H]"),
      .outputs = {{"y", dtypes::real, "[R, T, H] or [T, H]", "tokens"},
                  {"load", {DType::i32}, "[E]", "rows per expert"},
                  {"dispatch", {DType::i32}, "[R, R]", "rows from each rank to each rank"}},
      .attributes = std::move(attributes),
      .infer = infer,
      .reference = reference,
      .cases = cases,
  });
}

}  // namespace cermet::ep_moe_op
