#include "op/float_order.hpp"
#include "op/infer.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const Dim length = dim_of(p, 0, -1);
  if (length == Dim(0)) bad_operand(p, 0, "at least one element in a row", p.input(0).to_string());
  const Dims& dims = p.input(0).dims;
  return {{dtype_attribute(p, "out_dtype", DType::i32, dtypes::index), Dims(dims.begin(), dims.end() - 1)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t length = x.shape.back();
  for (std::int64_t row = 0; row < y.elements(); ++row) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < length; ++i)
      if (order_key(static_cast<float>(load(x, row * length + i))) > order_key(static_cast<float>(load(x, row * length + best)))) best = i;
    store(y, row, static_cast<double>(best));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t length : {1, 7, 16, 129, 5000}) list.push_back({fmt::format("{}_{}", name_of(t), length), {CaseOperand{{t, {3, length}}, normal(), 5}}});
  list.push_back({"ties", {CaseOperand{{DType::f32, {4, 70}}, integers(-2, 2)}}});
  list.push_back({"vocabulary", {CaseOperand{{DType::f32, {3, 50257}}, normal(3), 3}}});
  list.push_back({"vocabulary_ties", {CaseOperand{{DType::bf16, {2, 32000}}, integers(-2, 2)}}});
  list.push_back({"all_equal", {CaseOperand{{DType::bf16, {2, 40}}, constant(-3)}}});
  list.push_back({"nan_first_wins", {CaseOperand{{DType::f32, {2, 37}}, values({1, 2, INFINITY, NAN, 5, 6, NAN})}}});
  list.push_back({"minus_infinity", {CaseOperand{{DType::f16, {2, 20}}, constant(-INFINITY)}}});
  list.push_back({"zeros_tie", {CaseOperand{{DType::f32, {2, 20}}, values({-1, -0.0, 0.0, -2})}}});
  list.push_back({"i64", {CaseOperand{{DType::f32, {2, 3, 9}}}}, {{"out_dtype", "i64"}}});
  list.push_back({"one_row", {CaseOperand{{DType::f32, {300}}}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 9}}}}});
  return list;
}

}  // namespace

OpSpec define_argmax() {
  return {
      .category = "Sampling",
      .summary = "Index of the largest element of each row",
      .semantics =
          "y[..] = the i that maximizes x[.., i]; of equal elements the lowest i. NaN counts as larger than everything, as in PyTorch; the two zeros are "
          "equal.",
      .inputs = {{"x", dtypes::real, "[.., V]", "rows; V at least 1", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::index, "[..]", "indices"}},
      .attributes = {{"out_dtype", std::string(), "element type of y: i32 or i64; i32 where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet
