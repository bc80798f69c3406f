#include "op/gathering.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::gather_elements_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_indices_of_elements(p);
  return {{p.input(0).dtype, p.input(1).dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), x.shape.rank());
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    Shape at = coordinates(indices.shape, i);
    at[axis] = checked_signed_index("gather_elements", "1 (indices)", load_index(indices, i), x.shape[axis]);
    copy_element(x, dense_index(x.shape, at), y, i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Dims indices, std::int64_t axis, std::int64_t padding = 0) {
    const std::int64_t size =
        x[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.size()) : axis)].constant();
    const bool wide = size % 2 == 0;
    list.push_back(
        {std::move(name),
         {CaseOperand{{t, std::move(x)}, t == DType::boolean ? integers(0, 1) : integers(0, 100), padding},
          CaseOperand{{wide ? DType::i64 : DType::i32, std::move(indices)}, integers(-size, size - 1), padding}},
         {{"axis", axis}}});
  };
  for (DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3}) {
    add(fmt::format("{}_last", name_of(t)), t, {5, 33}, {4, 50}, -1);
    add(fmt::format("{}_first", name_of(t)), t, {9, 33}, {12, 31}, 0);
  }
  add("middle", DType::f32, {3, 8, 5}, {2, 6, 4}, 1);
  add("four_axes", DType::f32, {2, 3, 4, 5}, {2, 3, 9, 5}, 2);
  add("vector", DType::f32, {50}, {20}, 0);
  add("long", DType::f32, {40, 700}, {40, 900}, 1);
  add("strided_last", DType::f32, {5, 9}, {5, 7}, 1, 3);
  add("strided_first", DType::bf16, {5, 9}, {8, 9}, 0, 3);
  add("no_indices", DType::f32, {4, 6}, {0, 6}, 0);
  add("empty_axis", DType::f32, {4, 0}, {3, 0}, 1);
  list.push_back({"nan_values",
                  {CaseOperand{{DType::f32, {3}}, values({NAN, INFINITY, -0.0})},
                   CaseOperand{{DType::i32, {4}}, values({2, 0, 1, -3})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return define_gathering({
      .summary = "Elements picked by index along one axis, an index for each result",
      .semantics = "y at p is x at p with its axis coordinate replaced by indices[p], bit for bit. This is ONNX's "
                   "GatherElements. A negative index counts from the end; "
                   "one "
                   "outside [-D, D) is an error that names it.",
      .x = {"x", dtypes::any, "[.., D, ..]", "elements", Mapping::one_to_many},
      .indices = {"indices", dtypes::index, "[.., I, ..]",
                  "position along the axis; other dimensions at most those of x", Mapping::one_to_one},
      .y = {"y", dtypes::any, "[.., I, ..]", "the chosen elements"},
      .attribute = {"axis", 0, "axis of x that is indexed; negative counts from the end"},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  });
}

}  // namespace cermet::gather_elements_op
