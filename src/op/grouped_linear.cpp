#include "op/products.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 0, 2);
  expect_rank(p, 1, 3);
  expect_dim(p, 1, 2, dim_of(p, 0, 1), "K of x");
  expect_dims(p, 2, {dim_of(p, 1, 0) + Dim(1)}, "E of w and one more");
  const Dim n = dim_of(p, 1, 1);
  if (p.has(3)) expect_dims(p, 3, {dim_of(p, 1, 0), n}, "E and N of w");
  return {{dtype_attribute(p, "out_dtype", p.input(0).dtype, dtypes::real), with_last(p.input(0).dims, n)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &w = call.inputs[1], &offsets = call.inputs[2];
  const Rows rows(x), weights(w);
  const std::int64_t experts = w.shape[0], columns = w.shape[1];
  check_group_offsets("grouped_linear", offsets, rows.count());
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t r = load_index(offsets, e); r < load_index(offsets, e + 1); ++r)
      for (std::int64_t n = 0; n < columns; ++n) {
        const DotProduct dot = dot_product(rows.row(r), x.dtype, weights.row(e * columns + n), w.dtype, x.shape[1]);
        const double bias = call.has(3) ? load(call.inputs[3], e * columns + n) : 0;
        store(call.outputs[0], r * columns + n, dot.sum + bias);
        note_magnitude(call, 0, r * columns + n, dot.magnitude + std::abs(bias));
      }
}

CaseOperand weight(DType t, std::int64_t e, std::int64_t n, std::int64_t k) { return {{t, {e, n, k}}, normal(), 0, true}; }
CaseOperand offsets(std::vector<double> list, DType t = DType::i32) {
  const auto count = static_cast<std::int64_t>(list.size());
  return {{t, {count}}, values(std::move(list))};
}

std::vector<Case> cases() {
  constexpr DType real[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Case> list;
  for (const DType x : real)
    for (const DType w : real)
      list.push_back({fmt::format("{}_{}", name_of(x), name_of(w)), {CaseOperand{{x, {21, 67}}}, weight(w, 4, 41, 67), offsets({0, 1, 1, 4, 21})}});
  list.push_back({"bias",
                  {CaseOperand{{DType::bf16, {6, 32}}}, weight(DType::bf16, 3, 33, 32), offsets({0, 2, 5, 6}, DType::i64), CaseOperand{{DType::bf16, {3, 33}}}},
                  {{"out_dtype", "f32"}}});
  list.push_back({"not_constant", {CaseOperand{{DType::bf16, {6, 32}}}, CaseOperand{{DType::bf16, {2, 7, 32}}}, offsets({0, 0, 6})}});
  list.push_back({"one_row", {CaseOperand{{DType::bf16, {1, 64}}}, weight(DType::bf16, 8, 96, 64), offsets({0, 0, 0, 0, 1, 1, 1, 1, 1})}});
  list.push_back({"a_row_each", {CaseOperand{{DType::f32, {3, 34}}}, weight(DType::bf16, 5, 96, 34), offsets({0, 1, 1, 2, 2, 3})}, {{"out_dtype", "f16"}}});
  list.push_back({"all_to_last", {CaseOperand{{DType::bf16, {40, 16}}}, weight(DType::bf16, 3, 32, 16), offsets({0, 0, 0, 40})}});
  list.push_back({"strided", {CaseOperand{{DType::bf16, {17, 33}}, normal(), 5}, {{{DType::bf16, {2, 35, 33}}, normal(), 3, true}}, offsets({0, 9, 17})}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 2, 8, 16), offsets({0, 0, 0})}});
  list.push_back({"no_experts", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 0, 8, 16), offsets({0})}});
  list.push_back({"no_columns", {CaseOperand{{DType::f32, {2, 16}}}, weight(DType::f32, 1, 0, 16), offsets({0, 2})}});
  list.push_back({"no_reduction", {CaseOperand{{DType::bf16, {3, 0}}}, weight(DType::bf16, 2, 8, 0), offsets({0, 1, 3}), CaseOperand{{DType::f32, {2, 8}}}}});
  list.push_back({"nan_row", {CaseOperand{{DType::bf16, {2, 4}}, values({1, NAN, 3, 4, 5, 6, 7, 8})}, weight(DType::bf16, 1, 8, 4), offsets({0, 2})}});
  return list;
}

}  // namespace

OpDefinition define_grouped_linear() {
  return {
      .category = "Linear algebra",
      .summary = "Rows sorted by group, each group times its own weight matrix: the experts of a mixture",
      .semantics =
          "y[r, n] = sum over k of x[r, k] * w[e, n, k] + bias[e, n] for offsets[e] <= r < offsets[e + 1]. offsets starts at 0, never falls and ends at R; "
          "anything else is an error on the CPU. A group may be empty; its weights are then not read. Element types may be mixed freely; sums in float32, one "
          "rounding to out_dtype. As in linear, products of bfloat16 by bfloat16 may treat subnormal values as zero.",
      .inputs = {{"x", dtypes::real, "[R, K]", "rows sorted by group", Mapping::many_to_many},
                 {"w", dtypes::real, "[E, N, K]", "a weight for each group", Mapping::many_to_many},
                 {"offsets", dtypes::index, "[E + 1]", "first row of each group, and R", Mapping::many_to_many},
                 {"bias", dtypes::real, "[E, N]", "added before the rounding", Mapping::one_to_many, true}},
      .outputs = {{"y", dtypes::real, "[R, N]", "the products"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 2.0 * static_cast<double>(p.size(0, 0) * p.size(0, 1)) * static_cast<double>(p.size(1, 1)); },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(0, 1)) + 4; },
      .cases = cases,
  };
}

}  // namespace cermet
