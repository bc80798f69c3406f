#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::concat_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  TensorType y = p.input(0);
  const int axis = axis_attribute(p, "axis", y.rank());
  for (std::size_t i = 1; i < p.inputs.size(); ++i) {
    expect_dtype(p, i, y.dtype, "that of the first operand");
    expect_rank(p, i, y.rank());
    for (int a = 0; a < y.rank(); ++a) {
      Dim& dim = y.dims[static_cast<std::size_t>(a)];
      if (a == axis) dim = dim + dim_of(p, i, a);
      else expect_dim(p, i, a, dim, "that of the first operand");
    }
  }
  return {std::move(y)};
}

void reference(const ReferenceCall& call) {
  const TensorView& y = call.outputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), y.shape.rank());
  std::int64_t offset = 0;
  for (const TensorView& x : call.inputs) {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      Shape at = coordinates(x.shape, i);
      at[axis] += offset;
      copy_element(x, i, y, dense_index(y.shape, at));
    }
    offset += x.shape[axis];
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    list.push_back({std::string(name_of(t)),
                    {CaseOperand{{t, {5, 33}}, integers(0, 1)}, CaseOperand{{t, {5, 64}}, integers(0, 1)}},
                    {{"axis", -1}}});
  list.push_back(
      {"rows",
       {CaseOperand{{DType::f32, {5, 7}}}, CaseOperand{{DType::f32, {1, 7}}}, CaseOperand{{DType::f32, {130, 7}}}}});
  list.push_back(
      {"middle", {CaseOperand{{DType::f32, {3, 2, 5}}}, CaseOperand{{DType::f32, {3, 4, 5}}}}, {{"axis", 1}}});
  list.push_back({"one_operand", {CaseOperand{{DType::f32, {3, 5}}}}});
  list.push_back({"empty_operand", {CaseOperand{{DType::f32, {0, 5}}}, CaseOperand{{DType::f32, {2, 5}}}}});
  list.push_back({"all_empty", {CaseOperand{{DType::f32, {0, 5}}}, CaseOperand{{DType::f32, {0, 5}}}}});
  list.push_back({"strided",
                  {CaseOperand{{DType::f32, {4, 9}}, normal(), 3}, CaseOperand{{DType::f32, {4, 6}}, normal(), 2}},
                  {{"axis", 1}}});
  list.push_back({"vectors", {CaseOperand{{DType::f32, {1}}}, CaseOperand{{DType::f32, {7}}}}});
  list.push_back(
      {"nan",
       {CaseOperand{{DType::f32, {2}}, values({NAN, -0.0})}, CaseOperand{{DType::f32, {1}}, values({INFINITY})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Joins tensors along one axis",
      .semantics =
          "y holds the operands one after another along the axis, bit for bit; their other dimensions and element "
          "types are equal.",
      .inputs = {{"x", dtypes::any, "[.., D_i, ..]", "pieces", Mapping::one_to_one, false, true}},
      .outputs = {{"y", dtypes::any, "[.., sum D_i, ..]", "the pieces in order"}},
      .attributes = {{"axis", 0, "axis along which the pieces follow each other; negative counts from the end"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
      .associative = true,
  };
}

}  // namespace cermet::concat_op
