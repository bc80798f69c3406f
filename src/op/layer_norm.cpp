#include "op/norm.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::layer_norm_op {

namespace in = op::layer_norm;
namespace {

/// The operand whose dimensions say what a row is.
std::size_t covering(const Problem& p) { return p.has(in::weight) ? in::weight : in::bias; }

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  expect_trailing_of_x(p, in::weight);
  expect_trailing_of_x(p, in::bias);
  if (p.has(in::weight) && p.has(in::bias)) expect_dims(p, in::bias, p.input(in::weight).dims, "those of weight");
  expect_eps(p);
  return {{dtype_attribute(p, "out_dtype", p.input(in::x).dtype, dtypes::real), p.input(in::x).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[in::x];
  const std::size_t covers = call.has(in::weight) ? in::weight : in::bias;
  const std::int64_t length = call.has(covers) ? call.inputs[covers].elements() : x.shape.back();
  const auto parameter = [&](std::size_t operand, std::int64_t i, double fallback) {
    return call.has(operand) ? load(call.inputs[operand], i) : fallback;
  };
  for (std::int64_t begin = 0; begin < x.elements(); begin += length) {
    std::vector<double> row;
    for (std::int64_t i = 0; i < length; ++i) row.push_back(load(x, begin + i));
    const RowStatistics statistics = row_statistics(row, call.attributes.number("eps"));
    for (std::int64_t i = 0; i < length; ++i)
      store_normalized(call, begin + i, row[static_cast<std::size_t>(i)], statistics, parameter(in::weight, i, 1),
                       parameter(in::bias, i, 0));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (DType t : {f32, bf16, f16})
    for (std::int64_t h : {1, 7, 129, 1500})
      list.push_back(
          {fmt::format("{}_h{}", name_of(t), h),
           {CaseOperand{{t, {4, h}}, normal(2, 3)}, CaseOperand{{t, {h}}, normal(0.2, 1)}, CaseOperand{{t, {h}}}}});
  list.push_back({"no_parameters", {CaseOperand{{f32, {3, 100}}}}});
  list.push_back({"no_weight", {CaseOperand{{f32, {3, 100}}}, std::nullopt, CaseOperand{{bf16, {100}}}}});
  list.push_back({"no_bias", {CaseOperand{{bf16, {3, 100}}}, CaseOperand{{f32, {100}}}}, {{"eps", 1e-3}}});
  list.push_back({"large_mean", {CaseOperand{{f32, {3, 600}}, normal(1, 1000)}, CaseOperand{{f32, {600}}}}});
  list.push_back(
      {"two_trailing", {CaseOperand{{f32, {3, 4, 6}}}, CaseOperand{{f32, {4, 6}}}, CaseOperand{{f32, {4, 6}}}}});
  list.push_back(
      {"strided", {CaseOperand{{bf16, {2, 3, 33}}, normal(), 7}, CaseOperand{{f32, {33}}}}, {{"out_dtype", "f32"}}});
  list.push_back({"constant_rows", {CaseOperand{{f32, {2, 16}}, constant(3)}, CaseOperand{{f32, {16}}}}});
  list.push_back({"nan_row", {CaseOperand{{f32, {2, 5}}, values({1, 2, NAN, 4, 5, 6, 7, 8, 9, 10})}}});
  list.push_back({"no_rows", {CaseOperand{{f32, {0, 16}}}}});
  list.push_back({"no_columns", {CaseOperand{{f32, {3, 0}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Normalization",
      .summary = "Normalization to mean 0 and variance 1 over the last dimensions",
      .semantics =
          "y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and (biased) variance over the trailing "
          "dimensions that weight or bias cover (the "
          "last one "
          "without both), in float32 and two passes: the mean first, then the squared deviations from it. A row with a "
          "NaN gives a row of NaN.",
      .inputs = {{"x", dtypes::real, "[.., H]", "rows to normalize", Mapping::many_to_many},
                 {"weight", dtypes::real, "[H]", "scale per element; may cover several trailing dimensions",
                  Mapping::one_to_one, true},
                 {"bias", dtypes::real, "[H]", "added per element; dimensions of weight", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., H]", "normalized rows"}},
      .attributes = {{"eps", 1e-5, "added to the variance"},
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 7 * static_cast<double>(p.input(in::x).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem& p) { return norm_rounding_depth(p, covering(p)); },
      .cases = cases,
      .dense_dims = [](const Problem& p) { return trailing_dims(p, covering(p)); },
      .in_place = {0},
  };
}

}  // namespace cermet::layer_norm_op
