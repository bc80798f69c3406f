#include "op/gathering.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::gather_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  const Dims &x = p.input(0).dims, &indices = p.input(1).dims;
  const auto axis = x.begin() + axis_attribute(p, "axis", p.input(0).rank());
  Dims dims(x.begin(), axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), axis + 1, x.end());
  if (dims.size() > Shape::max_rank)
    bad_operand(p, 1, fmt::format("at most {} dimensions in the result", Shape::max_rank), p.input(1).to_string());
  return {{p.input(0).dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), x.shape.rank());
  const std::int64_t count = indices.elements(), size = x.shape[axis];
  std::int64_t outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= x.shape[a];
  for (int a = axis + 1; a < x.shape.rank(); ++a) inner *= x.shape[a];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = checked_signed_index("gather", "1 (indices)", load_index(indices, i), size);
      for (std::int64_t k = 0; k < inner; ++k)
        copy_element(x, (o * size + index) * inner + k, y, (o * count + i) * inner + k);
    }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto make = [](DType t, Dims x, Dims indices, std::int64_t size) {
    return std::vector<std::optional<CaseOperand>>{
        CaseOperand{{t, std::move(x)}, integers(0, 1)},
        CaseOperand{{DType::i32, std::move(indices)}, integers(-size, size - 1)}};
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::f8_e5m2, DType::boolean})
    list.push_back({fmt::format("{}_rows", name_of(t)), make(t, {9, 33}, {7}, 9)});
  list.push_back({"axis_1", make(DType::f32, {3, 8, 5}, {2, 4}, 8), {{"axis", 1}}});
  list.push_back({"axis_last", make(DType::f32, {3, 8, 5}, {2, 4}, 5), {{"axis", -1}}});
  list.push_back({"axis_last_bytes", make(DType::i8, {6, 129}, {67}, 129), {{"axis", 1}}});
  list.push_back({"scalar_index", make(DType::f32, {4, 6}, {}, 4)});
  list.push_back({"scalar_index_last", make(DType::f32, {4, 6}, {}, 6), {{"axis", 1}}});
  list.push_back({"scalar_from_vector", make(DType::f32, {6}, {}, 6)});
  list.push_back({"i64_indices", {CaseOperand{{DType::f32, {5, 7}}}, CaseOperand{{DType::i64, {6}}, integers(0, 4)}}});
  list.push_back(
      {"strided",
       {CaseOperand{{DType::f32, {5, 7}}, normal(), 3}, CaseOperand{{DType::i32, {3, 2}}, integers(0, 4), 2}}});
  list.push_back(
      {"strided_last",
       {CaseOperand{{DType::f32, {5, 7}}, normal(), 3}, CaseOperand{{DType::i32, {3, 2}}, integers(0, 6), 2}},
       {{"axis", 1}}});
  list.push_back({"no_indices", make(DType::f32, {4, 6}, {0}, 4)});
  list.push_back({"empty_rows", make(DType::f32, {4, 0}, {3}, 4)});
  list.push_back({"nan_values",
                  {CaseOperand{{DType::f32, {3}}, values({NAN, INFINITY, -0.0})},
                   CaseOperand{{DType::i32, {3}}, values({2, 0, 1})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return define_gathering({
      .summary = "Slices along one axis, picked by index",
      .semantics = "y[a.., i.., b..] = x[a.., indices[i..], b..], where a.. are the dimensions before the axis and b.. "
                   "those after it; bit for bit. A negative index "
                   "counts "
                   "from the end; one outside [-D, D) is an error that names it.",
      .x = {"x", dtypes::any, "[.., D, ..]", "slices along the axis", Mapping::one_to_many},
      .indices = {"indices", dtypes::index, "[..]", "which slices; any number of dimensions", Mapping::one_to_many},
      .y = {"y", dtypes::any, "[..]", "dimensions of x with those of indices in place of the axis"},
      .attribute = {"axis", 0, "axis of x that is indexed; negative counts from the end"},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  });
}

}  // namespace cermet::gather_op
