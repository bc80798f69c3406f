#include <algorithm>

#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::transpose_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  const Ints& permutation = p.attributes.integers("permutation");
  if (permutation.empty()) return {{x.dtype, Dims(x.dims.rbegin(), x.dims.rend())}};
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool complete = static_cast<int>(sorted.size()) == x.rank();
  for (std::size_t i = 0; complete && i < sorted.size(); ++i) complete = sorted[i] == static_cast<std::int64_t>(i);
  if (!complete) bad_attribute(p, "permutation", fmt::format("each of the {} axes of x once", x.rank()));
  Dims dims;
  for (const std::int64_t axis : permutation) dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
  return {{x.dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const Ints& permutation = call.attributes.integers("permutation");
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const Shape to = coordinates(y.shape, i);
    Shape from = to;
    for (int a = 0; a < to.rank(); ++a)
      from[permutation.empty() ? to.rank() - 1 - a : static_cast<int>(permutation[static_cast<std::size_t>(a)])] =
          to[a];
    copy_element(x, dense_index(x.shape, from), y, i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e5m2})
    list.push_back({fmt::format("{}_matrix", name_of(t)), {CaseOperand{{t, {67, 129}}, integers(0, 1)}}});
  list.push_back({"heads", {CaseOperand{{DType::bf16, {2, 7, 4, 33}}}}, {{"permutation", Ints{0, 2, 1, 3}}}});
  list.push_back({"last_two", {CaseOperand{{DType::f32, {3, 40, 70}}}}, {{"permutation", Ints{0, 2, 1}}}});
  list.push_back({"rotate", {CaseOperand{{DType::f32, {5, 6, 7}}}}, {{"permutation", Ints{2, 0, 1}}}});
  list.push_back(
      {"rotate_back", {CaseOperand{{DType::i8, {65, 6, 33}}, integers(-128, 127)}}, {{"permutation", Ints{1, 2, 0}}}});
  list.push_back({"identity", {CaseOperand{{DType::f32, {5, 6}}}}, {{"permutation", Ints{0, 1}}}});
  list.push_back({"reversed", {CaseOperand{{DType::f32, {2, 3, 4, 5}}}}});
  list.push_back({"column", {CaseOperand{{DType::f32, {9, 1}}}}});
  list.push_back({"row", {CaseOperand{{DType::f32, {1, 9}}}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {35, 20}}, normal(), 5}}});
  list.push_back(
      {"strided_heads", {CaseOperand{{DType::f32, {3, 5, 8}}, normal(), 4}}, {{"permutation", Ints{1, 0, 2}}}});
  list.push_back({"scalar", {CaseOperand{{DType::f32, {}}}}});
  list.push_back({"empty", {CaseOperand{{DType::f32, {4, 0, 3}}}}});
  list.push_back({"eight_axes",
                  {CaseOperand{{DType::f32, {2, 2, 2, 2, 2, 2, 2, 3}}}},
                  {{"permutation", Ints{7, 1, 5, 3, 4, 2, 6, 0}}}});
  list.push_back({"nan", {CaseOperand{{DType::f32, {2, 2}}, values({NAN, INFINITY, -0.0, 1})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Permutes the axes",
      .semantics =
          "Axis a of y is axis permutation[a] of x: y[i_0, i_1, ..] = x[j..] with j[permutation[a]] = i_a, bit for "
          "bit. An empty permutation reverses the "
          "axes.",
      .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::shuffle}},
      .outputs = {{"y", dtypes::any, "[..]", "dimensions of x in the order of the permutation"}},
      .attributes = {{"permutation", Ints{}, "axis of x for each axis of y; empty: the axes in reverse"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::transpose_op
