#include "op/operands.hpp"
#include "op/products.hpp"
#include "op/schema/operator.hpp"

namespace cermet::linear_op {

namespace in = op::linear;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  const Dim n = check_weight(p, 0, 1, 2);
  return {{dtype_attribute(p, "out_dtype", p.input(in::x).dtype, dtypes::real), with_last(p.input(in::x).dims, n)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &w = call.inputs[in::w], &y = call.outputs[0];
  const Rows x(call.inputs[in::x]), columns(w);
  for (std::int64_t r = 0; r < x.count(); ++r)
    for (std::int64_t n = 0; n < w.shape[0]; ++n) {
      const DotProduct dot = dot_product(x.row(r), call.inputs[in::x].dtype, columns.row(n), w.dtype, w.shape[1]);
      const double bias = call.has(in::bias) ? load(call.inputs[in::bias], n) : 0;
      store(y, r * w.shape[0] + n, dot.sum + bias);
      note_magnitude(call, 0, r * w.shape[0] + n, dot.magnitude + std::abs(bias));
    }
}

CaseOperand weight(DType t, std::int64_t n, std::int64_t k) { return {{t, {n, k}}, normal(), 0, true}; }

std::vector<Case> cases() {
  constexpr DType real[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Case> list;
  for (const DType x : real)
    for (const DType w : real) {
      const std::string types = fmt::format("{}_{}", name_of(x), name_of(w));
      for (const std::int64_t m : {1, 19})
        list.push_back({fmt::format("{}_m{}", types, m), {CaseOperand{{x, {m, 129}}}, weight(w, 67, 129)}});
      list.push_back(
          {types + "_not_constant", {CaseOperand{{x, {5, 77}}}, CaseOperand{{w, {9, 77}}}, CaseOperand{{x, {9}}}}});
    }
  for (const DType out : real)
    list.push_back({fmt::format("to_{}", name_of(out)),
                    {CaseOperand{{DType::bf16, {2, 40}}}, weight(DType::bf16, 33, 40)},
                    {{"out_dtype", std::string(name_of(out))}}});
  for (const std::int64_t m : {2, 4, 6, 7, 13, 14, 15, 29, 60})
    list.push_back(
        {fmt::format("rows_{}", m),
         {CaseOperand{{DType::bf16, {m, 34}}}, weight(DType::bf16, 40, 34), CaseOperand{{DType::f32, {40}}}}});
  // Of a router of experts: f32 rows.
  list.push_back({"router", {CaseOperand{{DType::f32, {64, 2048}}}, weight(DType::bf16, 128, 2048)}});
  list.push_back(
      {"router_uneven",
       {CaseOperand{{DType::f32, {60, 1100}}}, weight(DType::bf16, 125, 1100), CaseOperand{{DType::f32, {125}}}}});
  list.push_back(
      {"router_f16", {CaseOperand{{DType::f32, {10, 520}}}, weight(DType::f16, 60, 520)}, {{"out_dtype", "bf16"}}});
  list.push_back({"router_f32", {CaseOperand{{DType::f32, {35, 4100}}}, weight(DType::f32, 50, 4100)}});
  list.push_back(
      {"router_long", {CaseOperand{{DType::f32, {2, 5, 8192}}, normal(), 4}, weight(DType::bf16, 10, 8192)}});
  list.push_back(
      {"long", {CaseOperand{{DType::bf16, {2, 4099}}}, weight(DType::bf16, 5, 4099)}, {{"out_dtype", "f32"}}});
  list.push_back({"one", {CaseOperand{{DType::f32, {1}}}, weight(DType::f32, 1, 1)}});
  list.push_back(
      {"strided", {CaseOperand{{DType::bf16, {17, 33}}, normal(), 5}, {{{DType::bf16, {35, 33}}, normal(), 3, true}}}});
  list.push_back({"strided_f32",
                  {CaseOperand{{DType::f32, {2, 3, 33}}, normal(), 5}, {{{DType::f16, {35, 33}}, normal(), 3, true}}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 8, 16)}});
  list.push_back({"no_columns", {CaseOperand{{DType::f32, {3, 16}}}, weight(DType::f32, 0, 16)}});
  list.push_back({"no_reduction",
                  {CaseOperand{{DType::bf16, {20, 0}}}, weight(DType::bf16, 8, 0), CaseOperand{{DType::f32, {8}}}}});
  list.push_back({"zero_row", {CaseOperand{{DType::bf16, {2, 16}}, constant(0)}, weight(DType::bf16, 8, 16)}});
  for (const std::int64_t m : {2, 18})
    list.push_back(
        {fmt::format("non_finite_{}", m),
         {CaseOperand{{DType::bf16, {m, 5}}, values({1, 2, NAN, 4, 5, 6, INFINITY, 8, 9, 10, 1, 2, 3, 4, 5})},
          weight(DType::bf16, 3, 5)}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Linear algebra",
      .summary = "Rows times a weight matrix, plus a bias",
      .semantics =
          "y[.., n] = sum over k of x[.., k] * w[n, k] + bias[n]. Element types may be mixed freely: values are "
          "widened exactly, products are summed in "
          "float32, and the result is rounded once to out_dtype. K = 0 gives the bias. A constant weight is packed "
          "once; a row's result then "
          "does not depend on how many rows or threads there are.",
      .inputs = {{"x", dtypes::real, "[.., K]", "rows", Mapping::many_to_many},
                 {"w", dtypes::real, "[N, K]", "weight, a row per output feature", Mapping::many_to_many},
                 {"bias", dtypes::real, "[N]", "added before the rounding", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., N]", "the product"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2.0 * static_cast<double>(max_rows(p, in::x) * p.size(0, -1)) * static_cast<double>(p.size(1, 0));
          },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(1, 1)) + 4; },
      .cases = cases,
  };
}

}  // namespace cermet::linear_op
