#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::moe_unpermute_op {
namespace {

using enum op::moe_unpermute::Operand;

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, rows, 2);
  expect_rank(p, row_of, 2);
  expect_dims(p, weights, p.input(row_of).dims, "those of row_of");
  const Dims dims{dim_of(p, row_of, 0), dim_of(p, rows, 1)};
  if (p.has(residual)) expect_dims(p, residual, dims, "tokens of row_of, columns of rows");
  return {{dtype_attribute(p, "out_dtype", p.input(rows).dtype, dtypes::real), dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView& list = call.inputs[row_of];
  const std::int64_t tokens = list.shape[0], k = list.shape[1], hidden = call.outputs[0].shape[1];
  for (std::int64_t pair = 0; pair < list.elements(); ++pair)
    check_index("moe_unpermute", "1 (row_of)", load_index(list, pair), call.inputs[rows].shape[0]);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t h = 0; h < hidden; ++h) {
      double sum = 0, magnitude = 0;
      const auto add = [&](double term) {
        sum += term;
        magnitude += std::abs(term);
      };
      for (std::int64_t j = 0; j < k; ++j)
        add(load(call.inputs[weights], t * k + j) * load(call.inputs[rows], load_index(list, t * k + j) * hidden + h));
      if (call.has(residual)) add(load(call.inputs[residual], t * hidden + h));
      store(call.outputs[0], t * hidden + h, sum);
      note_magnitude(call, 0, t * hidden + h, magnitude);
    }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, std::int64_t tokens, std::int64_t k, std::int64_t hidden,
                       Attributes attributes = {}) {
    std::vector<double> order;  // any row may be read any number of times
    for (std::int64_t i = 0; i < tokens * k; ++i) order.push_back(static_cast<double>(i * 7 % (tokens * k)));
    list.push_back({std::move(name),
                    {CaseOperand{{t, {tokens * k, hidden}}, normal(), 3},
                     CaseOperand{{DType::i32, {tokens, k}}, values(std::move(order))},
                     CaseOperand{{DType::f32, {tokens, k}}, uniform(0, 1), 2}},
                    std::move(attributes)});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16}) {
    add(fmt::format("{}", name_of(t)), t, 5, 4, 129);
    add(fmt::format("{}_out", name_of(t)), DType::f32, 3, 2, 20, {{"out_dtype", std::string(name_of(t))}});
    add(fmt::format("{}_residual", name_of(t)), DType::bf16, 5, 3, 40, {{"out_dtype", "f32"}});
    list.back().inputs.push_back(CaseOperand{{t, {5, 40}}, normal(), 1});
  }
  add("one_expert", DType::f32, 7, 1, 1);
  add("many_tokens", DType::bf16, 200, 2, 16);
  add("no_tokens", DType::f32, 0, 2, 16);
  add("nan_row", DType::f32, 2, 2, 3);
  list.back().inputs[rows]->fill = values({1, 2, 3, 4, NAN, 6, 7, 8, 9, 10, 11, INFINITY});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Mixture of experts",
      .summary = "Weighted sum of each token's rows, back in token order",
      .semantics =
          "y[t] = sum_j weights[t, j] * rows[row_of[t, j]] (+ residual[t]), summed in float32 in the order of j with "
          "the residual last, rounded once. "
          "A row outside the operand is an error.",
      .inputs = {{"rows", dtypes::real, "[R, H]", "results of the experts", Mapping::many_to_many},
                 {"row_of", dtypes::index, "[T, k]", "row of each pair, as moe_permute gives it", Mapping::barrier},
                 {"weights", {DType::f32}, "[T, k]", "weights of the pairs", Mapping::one_to_many},
                 {"residual", dtypes::real, "[T, H]", "added to the sum", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[T, H]", "tokens"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; that of rows where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2.0 * static_cast<double>(p.input(row_of).elements().value(p.maximum)) *
                   static_cast<double>(p.size(rows, 1));
          },
      .rounding_depth = [](const Problem& p) { return 2.0 * static_cast<double>(p.size(row_of, 1)) + 2; },
      .cases = cases,
  };
}

}  // namespace cermet::moe_unpermute_op
