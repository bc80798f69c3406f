#include "op/schema/operator.hpp"
#include "op/slice_range.hpp"

#include "op/schema/axes.hpp"
#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::slice_op {
namespace {

constexpr std::int64_t to_the_end = std::numeric_limits<std::int64_t>::max();

/// Attribute `name` for entry i of axes; `fallback` where the list is empty.
std::int64_t entry(const Ints& list, std::size_t i, std::int64_t fallback) { return list.empty() ? fallback : list[i]; }

/// Position of a bound on a symbolic axis, which must turn out long enough for it.
Dim symbolic_bound(std::int64_t at, const Dim& size) { return at < 0 ? size + at : at == to_the_end ? size : Dim(at); }

Dim sliced(const Problem& p, const Dim& size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (size.is_constant()) return slice_range(start, end, step, size.constant()).count;
  if (step != 1) bad_attribute(p, "steps", fmt::format("1 along the symbolic dimension {}", size.to_string()));
  Dim count = symbolic_bound(end, size) + symbolic_bound(start, size) * -1;
  if ((count.is_constant() && count.constant() < 0) || !count.grows_with_symbols())
    bad_attribute(p, "ends", fmt::format("an end after the start along the symbolic dimension {}", size.to_string()));
  return count;
}

/// Positions start, start + step, .. of which there are `count`, or the last ones where the start is the end: whether
/// they are there is known here where everything is a number, else when the operator runs.
Dim counted(const Problem& p, const Dim& size, std::int64_t start, const Dim& count, std::int64_t step) {
  if (!size.is_constant() || !count.is_constant() || count == Dim(0)) return count;
  if (!counted_range(start, count.constant(), step, size.constant()))
    bad_attribute(p, "counts", fmt::format("positions inside {}", p.input(0).to_string()));
  return count;
}

std::vector<TensorType> infer(const Problem& p) {
  TensorType y = p.input(0);
  const Ints &starts = p.attributes.integers("starts"), &ends = p.attributes.integers("ends"),
             &steps = p.attributes.integers("steps");
  const std::vector<int> axes = axes_in_order(p, "axes", y.rank());
  const std::string per_axis = fmt::format("one entry for each of {} axes", axes.size());
  if (starts.size() != axes.size()) bad_attribute(p, "starts", per_axis);
  const Dims counts = dims_attribute(p, "counts");
  if (ends.size() != (counts.empty() ? axes.size() : 0))
    bad_attribute(p, "ends", counts.empty() ? per_axis : "none beside counts");
  if (!counts.empty() && counts.size() != axes.size()) bad_attribute(p, "counts", per_axis);
  if (!steps.empty() && steps.size() != axes.size()) bad_attribute(p, "steps", per_axis + ", or none");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t step = entry(steps, i, 1);
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) bad_attribute(p, "steps", "steps other than 0");
    Dim& dim = y.dims[static_cast<std::size_t>(axes[i])];
    dim = counts.empty() ? sliced(p, dim, starts[i], ends[i], step) : counted(p, dim, starts[i], counts[i], step);
  }
  return {std::move(y)};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const auto ranges = slice_ranges(slice_bounds(call.attributes, x.shape.rank()), x.shape, y.shape);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    Shape at = coordinates(y.shape, i);
    for (int a = 0; a < at.rank(); ++a)
      at[a] = ranges[static_cast<std::size_t>(a)].first + at[a] * ranges[static_cast<std::size_t>(a)].step;
    copy_element(x, dense_index(x.shape, at), y, i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    list.push_back({fmt::format("{}_columns", name_of(t)),
                    {CaseOperand{{t, {5, 129}}, integers(0, 1)}},
                    {{"starts", Ints{3}}, {"ends", Ints{100}}, {"axes", Ints{1}}}});
  const auto add = [&](const char* name, Dims dims, Attributes attributes) {
    list.push_back({name, {CaseOperand{{DType::f32, std::move(dims)}, normal(), 2}}, std::move(attributes)});
  };
  add("rows", {9, 7}, {{"starts", Ints{2}}, {"ends", Ints{8}}, {"axes", Ints{0}}});
  add("all_axes", {4, 5, 6}, {{"starts", Ints{1, 0, 2}}, {"ends", Ints{3, 5, 6}}});
  add("from_the_end", {9, 7}, {{"starts", Ints{-3}}, {"ends", Ints{-1}}, {"axes", Ints{0}}});
  add("last_row", {9, 7}, {{"starts", Ints{-1}}, {"ends", Ints{to_the_end}}, {"axes", Ints{0}}});
  add("steps", {9, 30}, {{"starts", Ints{0, 1}}, {"ends", Ints{9, 30}}, {"steps", Ints{2, 3}}});
  add("reversed", {4, 9}, {{"starts", Ints{-1}}, {"ends", Ints{-to_the_end}}, {"axes", Ints{1}}, {"steps", Ints{-1}}});
  add("reversed_rows", {6, 9}, {{"starts", Ints{4}}, {"ends", Ints{0}}, {"axes", Ints{0}}, {"steps", Ints{-2}}});
  add("clamped", {4, 9}, {{"starts", Ints{-100}}, {"ends", Ints{100}}, {"axes", Ints{-1}}});
  add("nothing", {4, 9}, {{"starts", Ints{5}}, {"ends", Ints{2}}, {"axes", Ints{1}}});
  add("axes_in_other_order", {4, 9}, {{"starts", Ints{5, 1}}, {"ends", Ints{9, 3}}, {"axes", Ints{1, 0}}});
  add("huge_step", {4, 9}, {{"starts", Ints{1}}, {"ends", Ints{9}}, {"axes", Ints{1}}, {"steps", Ints{to_the_end}}});
  add("counted", {4, 9}, {{"starts", Ints{2, -1}}, {"counts", Strings{"2", "3"}}, {"steps", Ints{1, -3}}});
  add("last_counted", {4, 9}, {{"starts", Ints{to_the_end, 1}}, {"counts", Strings{"3", "5"}}});
  add("last_counted_steps", {9}, {{"starts", Ints{to_the_end}}, {"counts", Strings{"3"}}, {"steps", Ints{2}}});
  add("empty", {0, 9}, {{"starts", Ints{1}}, {"ends", Ints{9}}, {"axes", Ints{1}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "A range of positions along some axes",
      .semantics =
          "Along axes[i], y takes the positions starts[i], starts[i] + steps[i], .. before ends[i], bit for bit. As in "
          "NumPy and ONNX a negative start or end "
          "counts "
          "from the end, both are clamped to the axis, and a negative step walks backwards. Along a symbolic dimension "
          "the step is 1 and nothing is clamped: "
          "the "
          "dimension must be long enough when the operator runs. `counts`, where given, says how many positions are "
          "taken, which may be symbolic; then nothing "
          "is "
          "clamped either, and a start of 9223372036854775807 takes the last ones. No axes means all of them.",
      .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::one_to_one}},
      .outputs = {{"y", dtypes::any, "[..]", "the chosen positions"}},
      .attributes = {{"starts", Ints{}, "first position along each axis"},
                     {"ends", Ints{}, "position to stop before; 9223372036854775807 for the end"},
                     {"counts", Strings{},
                      "in place of ends, how many positions as text, where that is symbolic: \"T\", \"16\""},
                     {"axes", Ints{}, "axes that are sliced; empty: all, in order"},
                     {"steps", Ints{}, "distance between positions; empty: 1"}},
      .infer = infer,
      .reference = reference,
      .bytes = [](const Problem& p) { return 2 * static_cast<double>(p.outputs[0].bytes().value(p.maximum)); },
      .cases = cases,
      .in_place = {-1},  // an element may be another's source
  };
}

}  // namespace cermet::slice_op

namespace cermet {

PerAxis<SliceBounds> slice_bounds(const Attributes& attributes, int rank) {
  PerAxis<SliceBounds> bounds;
  const Ints &starts = attributes.integers("starts"), &ends = attributes.integers("ends"),
             &steps = attributes.integers("steps");
  const Ints& axes = attributes.integers("axes");
  for (std::size_t i = 0; i < starts.size(); ++i)
    bounds[static_cast<std::size_t>(wrap_axis(slice_op::entry(axes, i, static_cast<std::int64_t>(i)), rank))] = {
        starts[i], slice_op::entry(ends, i, 0), slice_op::entry(steps, i, 1), ends.empty()};
  return bounds;
}

PerAxis<SliceRange> slice_ranges(const PerAxis<SliceBounds>& bounds, const Shape& x, const Shape& y) {
  PerAxis<SliceRange> ranges;
  for (int a = 0; a < x.rank(); ++a) {
    const SliceBounds& wanted = bounds[static_cast<std::size_t>(a)];
    SliceRange& range = ranges[static_cast<std::size_t>(a)];
    if (wanted.counted) range = counted_range(wanted.start, y[a], wanted.step, x[a]).value_or(SliceRange{0, 1, -1});
    else range = slice_range(wanted.start, wanted.end, wanted.step, x[a]);
    require(range.count == y[a],
            "slice: operand 0 (x): expected dimension {} to be long enough for {} positions, found {}", a, y[a],
            x.to_string());
  }
  return ranges;
}

}  // namespace cermet
