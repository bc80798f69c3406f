#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::nonzero_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  return {{DType::i64, {Dim(x.rank()), x.elements()}}, {DType::i64, {1}}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &at = call.outputs[0], &count = call.outputs[1];
  const std::int64_t elements = x.elements();
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < at.elements(); ++i) store_integer(at, i, 0);
  for (std::int64_t i = 0; i < elements; ++i) {
    if (load(x, i) == 0) continue;
    const Shape position = coordinates(x.shape, i);
    for (int a = 0; a < x.shape.rank(); ++a) store_integer(at, a * elements + found, position[a]);
    ++found;
  }
  store_integer(count, 0, found);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64,
                  DType::boolean, DType::f8_e4m3})
    list.push_back({std::string(name_of(t)), {CaseOperand{{t, {9, 33}}, integers(0, 1)}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {9, 5}}, integers(0, 2), 3}}});
  list.push_back({"three_axes", {CaseOperand{{DType::f32, {3, 7, 11}}, integers(0, 2)}}});
  list.push_back({"vector", {CaseOperand{{DType::boolean, {70000}}, integers(0, 1)}}});
  list.push_back({"long_rows", {CaseOperand{{DType::i8, {3, 9001}}, integers(0, 1)}}});
  list.push_back({"none_found", {CaseOperand{{DType::f32, {4, 5}}, constant(0)}}});
  list.push_back({"all_found", {CaseOperand{{DType::f32, {4, 5}}, constant(2)}}});
  list.push_back({"scalar", {CaseOperand{{DType::f32, {}}, constant(2)}}});
  list.push_back({"zero_scalar", {CaseOperand{{DType::f32, {}}, constant(0)}}});
  list.push_back({"empty", {CaseOperand{{DType::f32, {0, 5}}}}});
  list.push_back(
      {"signed_zero_and_nan", {CaseOperand{{DType::f32, {6}}, values({-0.0, NAN, 0, INFINITY, 1e-45, -0.0})}}});
  list.push_back(
      {"f8_signed_zero_and_nan", {CaseOperand{{DType::f8_e5m2, {6}}, values({-0.0, NAN, 0, INFINITY, 1, -0.0})}}});
  list.push_back(
      {"f64_signed_zero_and_nan", {CaseOperand{{DType::f64, {6}}, values({-0.0, NAN, 0, INFINITY, 5e-324, -0.0})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Coordinates of the elements that are not zero",
      .semantics =
          "count is the number C of elements of x that are not zero (NaN is not, -0 is). coordinates[a, j] is the "
          "position along axis a of the j-th of them in "
          "row-major order, for j < C; the other columns are 0. ONNX's NonZero is the first C columns.",
      .inputs = {{"x", dtypes::any, "[..]", "elements; N in all, R dimensions", Mapping::barrier}},
      .outputs = {{"coordinates", DTypeSet{DType::i64}, "[R, N]", "a column for each element that is not zero"},
                  {"count", DTypeSet{DType::i64}, "[1]", "how many columns there are"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::nonzero_op
