#include <algorithm>
#include <map>
#include <numeric>

#include "op/element_order.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::unique_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  const Ints& axis = p.attributes.integers("axis");
  if (axis.size() > 1) bad_attribute(p, "axis", "at most one axis");
  if (axis.empty()) {
    const TensorType list{DType::i64, {x.elements()}};
    return {{x.dtype, {x.elements()}}, list, list, list, {DType::i64, {1}}};
  }
  const TensorType list{DType::i64, {x.dims[static_cast<std::size_t>(axes_attribute(p, "axis", x.rank())[0])]}};
  return {x, list, list, list, {DType::i64, {1}}};
}

/// Dense index of element k of slice i of a tensor of this shape.
std::int64_t element_of(const Shape& shape, int axis, std::int64_t i, std::int64_t k) {
  std::int64_t inner = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  return (k / inner * shape[axis] + i) * inner + k % inner;
}

void reference(const ReferenceCall& call) {
  enum Output : std::size_t { y, indices, inverse, counts, count };
  const Ints& axes = call.attributes.integers("axis");
  const TensorView& x = call.inputs[0];
  const std::int64_t slices = call.outputs[inverse].elements();
  const Shape shape = axes.empty() ? Shape{slices} : x.shape;
  const int axis = axes.empty() ? 0 : wrap_axis(axes[0], shape.rank());
  std::int64_t length = 1;
  for (int a = 0; a < shape.rank(); ++a) length *= a == axis ? 1 : shape[a];
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>>
      groups;  // by keys, in their order: the slices that have them
  for (std::int64_t i = 0; i < slices; ++i) {
    std::vector<std::int64_t> keys;
    for (std::int64_t k = 0; k < length; ++k) keys.push_back(ordinal(x, element_of(shape, axis, i, k)));
    groups[keys].push_back(i);
  }
  std::vector<std::vector<std::int64_t>> list;
  for (auto& [keys, members] : groups) list.push_back(std::move(members));
  if (!call.attributes.flag("sorted")) std::ranges::sort(list);  // by the first member
  for (std::int64_t i = 0; i < call.outputs[y].elements(); ++i) store(call.outputs[y], i, 0);
  for (std::int64_t i = 0; i < slices; ++i)
    for (const Output output : {indices, counts}) store_integer(call.outputs[output], i, 0);
  for (std::int64_t u = 0; u < static_cast<std::int64_t>(list.size()); ++u) {
    const std::vector<std::int64_t>& members = list[static_cast<std::size_t>(u)];
    store_integer(call.outputs[indices], u, members[0]);
    store_integer(call.outputs[counts], u, static_cast<std::int64_t>(members.size()));
    for (const std::int64_t i : members) store_integer(call.outputs[inverse], i, u);
    for (std::int64_t k = 0; k < length; ++k)
      copy_element(x, element_of(shape, axis, members[0], k), call.outputs[y], element_of(shape, axis, u, k));
  }
  store_integer(call.outputs[count], 0, static_cast<std::int64_t>(list.size()));
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const bool sorted : {true, false}) {
    const auto add = [&](const std::string& name, CaseOperand x, const Ints& axis = {}) {
      list.push_back({name + (sorted ? "" : "_unsorted"), {std::move(x)}, {{"axis", axis}, {"sorted", sorted}}});
    };
    for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i16, DType::i32,
                    DType::u32, DType::i64, DType::u64, DType::boolean, DType::f8_e4m3})
      add(std::string(name_of(t)), {{t, {7, 9}}, t == DType::boolean ? integers(0, 1) : integers(0, 20)});
    add("rows", {{DType::f32, {20, 3}}, integers(0, 2)}, {0});
    add("columns", {{DType::i64, {2, 30}}, integers(-2, 1)}, {1});
    add("middle", {{DType::f32, {2, 12, 2}}, integers(0, 1)}, {-2});
    add("all_different", {{DType::f32, {50}}});
    add("all_equal", {{DType::f32, {5, 6}}, constant(3)});
    add("long", {{DType::i32, {3000}}, integers(0, 700)});
    add("strided", {{DType::f32, {5, 7}}, integers(0, 9), 3});
    add("strided_columns", {{DType::f32, {3, 20}}, integers(0, 2), 3}, {1});
    add("specials", {{DType::f32, {9}}, values({NAN, -0.0, INFINITY, 0.0, NAN, -INFINITY, 1, -INFINITY, 1})});
    add("scalar", {{DType::f32, {}}, constant(2)});
    add("empty", {{DType::f32, {0, 3}}});
    add("empty_slices", {{DType::f32, {4, 0}}}, {0});
    add("no_slices", {{DType::f32, {0, 3}}}, {0});
  }
  return list;
}

}  // namespace

OpSpec define() {
  const DTypeSet index{DType::i64};
  return {
      .category = "Data movement",
      .summary = "The different elements, or slices along an axis, and where they are",
      .semantics =
          "Elements of x in row-major order or, with an axis, slices x[.., i, ..] are grouped with their equals; the "
          "two zeros are equal, and so are NaNs. The "
          "groups are "
          "in rising order (of slices: by the first elements that differ; NaN last) or, unless `sorted`, in the order "
          "of their first members. count is their "
          "number U. For u < U, y[u] is the first member of group u, indices[u] its position, counts[u] the number of "
          "members; behind them all three are 0. "
          "inverse_indices[i] is the group of element or slice i. ONNX's Unique is the first U of each.",
      .inputs = {{"x", dtypes::any, "[..]", "elements; N in all, or N slices along the axis", Mapping::barrier}},
      .outputs = {{"y", dtypes::any, "[N] or [..]", "a member of each group; dimensions of x with an axis"},
                  {"indices", index, "[N]", "position of each group's first member"},
                  {"inverse_indices", index, "[N]", "group of each element or slice"},
                  {"counts", index, "[N]", "members of each group"},
                  {"count", index, "[1]", "number of groups"}},
      .attributes = {{"axis", Ints{}, "axis whose slices are compared; where empty, elements are"},
                     {"sorted", true, "groups in rising order"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::unique_op
