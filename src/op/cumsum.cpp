#include "op/reduction.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cumsum_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  axis_attribute(p, "axis", p.input(0).rank());
  return {p.input(0)};
}

/// One line along the axis: element i of the line is element `first + i * step` of x and y.
void scan_line(const ReferenceCall& call, std::int64_t first, std::int64_t step, std::int64_t count) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const bool exclusive = call.attributes.flag("exclusive"), reverse = call.attributes.flag("reverse"),
             integral = is_integer(x.dtype);
  RealReducer sum(Reduction::sum);
  IntegerReducer whole =
      integer_reducer(Reduction::sum, integral ? x.dtype : DType::i64, call.attributes.text("overflow") == "wrap");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = first + (reverse ? count - 1 - i : i) * step;
    const auto write = [&] {
      if (integral) return store_integer(y, at, whole.result());
      store(y, at, sum.result());
      note_magnitude(call, 0, at, sum.magnitude());
    };
    if (exclusive) write();
    if (integral) whole.add(load_integer(x, at));
    else sum.add(load(x, at));
    if (!exclusive) write();
  }
}

void reference(const ReferenceCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const int axis = wrap_axis(call.attributes.integer("axis"), shape.rank());
  std::int64_t step = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) step *= shape[a];
  if (shape.elements() == 0) return;
  for (std::int64_t block = 0; block < shape.elements(); block += step * shape[axis])
    for (std::int64_t i = 0; i < step; ++i) scan_line(call, block + i, step, shape[axis]);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      const auto add = [&](std::string_view name, DType t, Dims dims, std::int64_t axis, std::int64_t padding = 0,
                           Fill fill = normal()) {
        list.push_back(
            {fmt::format("{}{}{}", name, exclusive ? "_exclusive" : "", reverse ? "_reverse" : ""),
             {CaseOperand{{t, std::move(dims)}, is_integer(t) ? integers(-1000, 1000) : std::move(fill), padding}},
             {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}});
      };
      for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64}) {
        add(std::string(name_of(t)) + "_last", t, {3, 129}, -1);
        add(std::string(name_of(t)) + "_first", t, {9, 33}, 0);
        add(std::string(name_of(t)) + "_tall", t, {1100, 37}, 0);
      }
      add("middle", DType::f32, {3, 7, 5}, 1);
      add("long", DType::f32, {2, 1500}, 1);
      add("wide", DType::bf16, {5, 1030}, 0);
      add("tall_middle", DType::f32, {2, 260, 21}, 1);
      add("tall_strided", DType::f32, {300, 40}, 0, 3);
      add("one", DType::f32, {3, 1}, 1);
      add("strided_last", DType::f32, {4, 9}, 1, 3);
      add("strided_first", DType::f32, {4, 9}, 0, 3);
      add("no_rows", DType::f32, {0, 4}, 1);
      add("no_columns", DType::f32, {4, 0}, 0);
      add("nan", DType::f32, {2, 4}, 1, 0, values({1, NAN, 2, 3, INFINITY, 1, 1, 1}));
    }
  list.push_back({"tall_and_wide", {CaseOperand{{DType::f32, {260, 4230}}}}, {{"axis", 0}}});
  list.push_back({"saturates", {CaseOperand{{DType::i32, {4}}, values({2e9, 2e9, -2e9, -2e9})}}});
  for (const DType t : {DType::i32, DType::i64})
    for (const bool last : {true, false}) {
      const double big = t == DType::i32 ? 2e9 : 0x1.8p62;
      list.push_back({fmt::format("wraps_{}{}", name_of(t), last ? "" : "_first"),
                      {CaseOperand{{t, {200, 5}}, values({big, big, -3, -big, 1, big, 7})}},
                      {{"overflow", "wrap"}, {"axis", last ? 1 : 0}, {"reverse", last}}});
    }
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Reductions",
      .summary = "Running sums along one axis",
      .semantics =
          "y[i] = x[0] + .. + x[i] along the axis; `exclusive` leaves x[i] out, so that the first result is 0; "
          "`reverse` runs from the end. Floating: "
          "accumulated in "
          "float32 (f64: in its own type) in that order, each result rounded once from the unrounded sum. Integers: "
          "the exact sum, clamped to the type's range, or its low bits with overflow = wrap.",
      .inputs = {{"x", dtypes::real | dtypes::index | DTypeSet{DType::f64}, "[..]", "elements", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real | dtypes::index | DTypeSet{DType::f64}, "[..]", "running sums"}},
      .attributes = {{"axis", -1, "axis along which to add; negative counts from the end"},
                     {"exclusive", false, "leave the element itself out"},
                     {"reverse", false, "add from the end"},
                     {"overflow",
                      std::string("clamp"),
                      "of integers: what sums beyond the type's range give",
                      {"clamp", "wrap"}}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth =
          [](const Problem& p) {
            return static_cast<double>(p.size(0, wrap_axis(p.attributes.integer("axis"), p.input(0).rank())));
          },
      .cases = cases,
      .in_place = {0},
  };
}

}  // namespace cermet::cumsum_op
