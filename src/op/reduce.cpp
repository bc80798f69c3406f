// The reductions along axes differ only in the reduction; each define function below is one operator.
#include "op/reduction.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& x = p.input(0);
  const std::vector<int> axes = axes_attribute(p, "axes", x.rank());
  const bool keepdims = p.attributes.flag("keepdims");
  Dims dims;
  for (int a = 0; a < x.rank(); ++a) {
    const bool reduced = std::find(axes.begin(), axes.end(), a) != axes.end();
    if (!reduced || keepdims) dims.push_back(reduced ? Dim(1) : x.dims[static_cast<std::size_t>(a)]);
  }
  if (!dtypes::real.contains(x.dtype) && !p.attributes.text("out_dtype").empty())
    bad_attribute(p, "out_dtype", fmt::format("nothing for an operand of type {}", name_of(x.dtype)));
  return {{dtype_attribute(p, "out_dtype", x.dtype, dtypes::real), std::move(dims)}};
}

/// Calls body(y index, x index) for every element, in the order in which elements of one result are reduced.
template <class Body>
void for_terms(const ReferenceCall& call, Body body) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  Shape kept = x.shape, inner = x.shape;  // dimensions of the kept and of the reduced axes; 1 elsewhere
  for (int a = 0; a < x.shape.rank(); ++a) inner[a] = 1;
  for (const int a : wrap_axes(call.attributes.integers("axes"), x.shape.rank())) std::swap(kept[a], inner[a]);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const Shape base = coordinates(kept, i);
    for (std::int64_t j = 0; j < inner.elements(); ++j) {
      Shape at = coordinates(inner, j);
      for (int a = 0; a < at.rank(); ++a) at[a] += base[a];
      body(i, dense_index(x.shape, at));
    }
  }
}

/// Elements of integer types, exactly; u64 does not fit the functions that other references use.
IntegerReducer::Wide load_whole(const TensorView& view, std::int64_t index) {
  if (view.dtype == DType::u64) return view.as<const std::uint64_t>()[element_offset(view, index)];
  return load_integer(view, index);
}
void store_whole(const TensorView& view, std::int64_t index, std::int64_t bits) {
  if (view.dtype == DType::u64)
    view.as<std::uint64_t>()[element_offset(view, index)] = static_cast<std::uint64_t>(bits);
  else store_integer(view, index, bits);
}

void reference(const ReferenceCall& call, Reduction kind) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const auto results = static_cast<std::size_t>(y.elements());
  if (!is_floating(x.dtype)) {
    const bool wraps = kind == Reduction::sum && call.attributes.text("overflow") == "wrap";
    std::vector<IntegerReducer> reducers(results, integer_reducer(kind, x.dtype, wraps));
    for_terms(call,
              [&](std::int64_t i, std::int64_t j) { reducers[static_cast<std::size_t>(i)].add(load_whole(x, j)); });
    for (std::int64_t i = 0; i < y.elements(); ++i) store_whole(y, i, reducers[static_cast<std::size_t>(i)].result());
    return;
  }
  std::vector<RealReducer> reducers(results, RealReducer(kind));
  for_terms(call, [&](std::int64_t i, std::int64_t j) { reducers[static_cast<std::size_t>(i)].add(load(x, j)); });
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    store(y, i, reducers[static_cast<std::size_t>(i)].result());
    note_magnitude(call, 0, i, reducers[static_cast<std::size_t>(i)].magnitude());
  }
}

/// How many elements one result is made of, at the symbols' maximum.
double terms(const Problem& p) {
  const double results = static_cast<double>(p.outputs[0].elements().value(p.maximum));
  return results == 0 ? 0 : static_cast<double>(p.input(0).elements().value(p.maximum)) / results;
}

DTypeSet types_of(Reduction kind) {
  const DTypeSet numbers = dtypes::real | dtypes::integer | DTypeSet{DType::f64};
  return kind == Reduction::max || kind == Reduction::min ? numbers | DTypeSet{DType::boolean} : numbers;
}

std::vector<Case> cases(Reduction kind) {
  std::vector<Case> list;
  const Fill fill = kind == Reduction::prod ? uniform(0.9, 1.1) : normal();
  const auto add = [&](std::string name, DType t, Dims dims, Attributes attributes, std::int64_t padding = 0) {
    const Fill integral = kind == Reduction::prod ? integers(-2, 2) : integers(-100, 100);
    list.push_back({std::move(name),
                    {CaseOperand{{t, std::move(dims)}, !is_floating(t) ? integral : fill, padding}},
                    std::move(attributes)});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64}) {
    const std::string name(name_of(t));
    add(name + "_last", t, {5, 129}, {{"axes", Ints{-1}}});
    add(name + "_first", t, {9, 130}, {{"axes", Ints{0}}});
    add(name + "_all", t, {3, 4, 70}, {});
    add(name + "_middle", t, {3, 17, 5}, {{"axes", Ints{1}}, {"keepdims", true}});
    add(name + "_outer_and_last", t, {3, 4, 33}, {{"axes", Ints{0, 2}}});
  }
  for (DType t : {DType::f64, DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64, DType::boolean}) {
    if (!types_of(kind).contains(t)) continue;
    const std::string name(name_of(t));
    add(name + "_last", t, {5, 129}, {{"axes", Ints{-1}}});
    add(name + "_middle", t, {3, 17, 5}, {{"axes", Ints{1}}, {"keepdims", true}});
    add(name + "_outer_and_last", t, {3, 4, 33}, {{"axes", Ints{0, 2}}}, 3);
    add(name + "_of_nothing", t, {0, 3}, {{"axes", Ints{0}}});
  }
  list.push_back(
      {"saturates_u64",
       {CaseOperand{{DType::u64, {3, 3}}, values({0x1p64, 0x1p64, 2, 0x1p63, 1, 0, 0x1p63, 0x1p62, 0x1p62})}},
       {{"axes", Ints{1}}}});
  if (kind == Reduction::sum)
    for (DType t : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
      const double big =
          std::ldexp(0.75, static_cast<int>(8 * size_of(t)) -
                               (t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64 ? 0 : 1));
      for (const std::int64_t axis : {0, 1})
        list.push_back({fmt::format("wraps_{}_{}", name_of(t), axis),
                        {CaseOperand{{t, {70, 37}}, values({big, big, 3, big, 1, big, 7, 0})}},
                        {{"axes", Ints{axis}}, {"overflow", "wrap"}}});
    }
  list.push_back(
      {"saturates_i8", {CaseOperand{{DType::i8, {2, 3}}, values({100, 100, -3, -100, -100, 3})}}, {{"axes", Ints{1}}}});
  add("long_row", DType::f32, {2, 3000}, {{"axes", Ints{1}}});
  add("vector_of_many", DType::bf16, {20000}, {});
  add("tall_columns", DType::f32, {1500, 36}, {{"axes", Ints{0}}});
  add("tall_odd_columns", DType::bf16, {3, 700, 21}, {{"axes", Ints{1}}});
  add("wide_columns", DType::f32, {7, 1100}, {{"axes", Ints{0}}});
  add("one_element", DType::f32, {4, 1}, {{"axes", Ints{1}}});
  add("scalar", DType::f32, {}, {});
  add("vector", DType::f32, {100}, {{"keepdims", true}});
  add("strided_last", DType::f32, {4, 6, 9}, {{"axes", Ints{2}}}, 3);
  add("strided_first", DType::f32, {4, 6, 9}, {{"axes", Ints{0}}}, 3);
  add("strided_leading", DType::bf16, {4, 6, 9}, {{"axes", Ints{0, 1}}}, 3);
  add("f32_to_bf16", DType::f32, {6, 40}, {{"axes", Ints{1}}, {"out_dtype", "bf16"}});
  add("bf16_to_f32", DType::bf16, {6, 40}, {{"axes", Ints{0}}, {"out_dtype", "f32"}});
  add("of_nothing", DType::f32, {3, 0}, {{"axes", Ints{1}}});
  add("of_nothing_columns", DType::i32, {0, 3}, {{"axes", Ints{0}}});
  add("no_results", DType::f32, {0, 3}, {{"axes", Ints{1}}});
  list.push_back({"nan",
                  {CaseOperand{{DType::f32, {3, 3}}, values({1, NAN, 2, INFINITY, 3, -INFINITY, 4, 5, 6})}},
                  {{"axes", Ints{1}}}});
  list.push_back({"nan_columns",
                  {CaseOperand{{DType::f32, {3, 3}}, values({1, NAN, 2, INFINITY, 3, -INFINITY, 4, 5, 6})}},
                  {{"axes", Ints{0}}}});
  list.push_back({"saturates",
                  {CaseOperand{{DType::i32, {2, 3}}, values({2e9, 2e9, -1e9, -2e9, -2e9, -1})}},
                  {{"axes", Ints{1}}}});
  list.push_back(
      {"halves", {CaseOperand{{DType::i32, {4, 2}}, values({1, 2, 2, 3, -1, -2, -2, -3})}}, {{"axes", Ints{1}}}});
  return list;
}

std::vector<AttributeSpec> attributes_of(Reduction kind) {
  std::vector<AttributeSpec> list{
      {"axes", Ints{}, "axes to reduce; negative ones count from the end; empty: all"},
      {"keepdims", false, "keep reduced axes as dimensions of 1"},
      {"out_dtype", std::string(), "element type of y for x of f32, bf16 and f16; that of x where empty"}};
  if (kind == Reduction::sum)
    list.push_back(
        {"overflow", std::string("clamp"), "of integers: what a sum beyond the type's range gives", {"clamp", "wrap"}});
  return list;
}

OpSpec make(Reduction kind, std::string_view summary, std::string_view semantics) {
  const bool rounds = kind == Reduction::sum || kind == Reduction::mean || kind == Reduction::prod;
  return {
      .category = "Reductions",
      .summary = summary,
      .semantics = semantics,
      .inputs = {{"x", types_of(kind), "[..]", "elements", Mapping::many_to_many}},
      .outputs = {{"y", types_of(kind), "[..]", "x without the reduced axes, or with 1 in their place"}},
      .attributes = attributes_of(kind),
      .infer = infer,
      .reference = [kind](const ReferenceCall& call) { reference(call, kind); },
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [rounds](const Problem& p) { return rounds ? terms(p) + 4 : 0; },
      .cases = [kind] { return cases(kind); },
  };
}

}  // namespace

namespace reduce_sum_op {
OpSpec define() {
  return make(
      Reduction::sum, "Sum along axes",
      "Floating: accumulated in float32 (f64: in double) in a fixed order, one rounding. Integers: exact, "
      "clamped once to the type's range, or the low bits of the sum with overflow = wrap. The sum of nothing is 0.");
}
}  // namespace reduce_sum_op

namespace reduce_mean_op {
OpSpec define() {
  return make(Reduction::mean, "Mean along axes",
              "The sum of reduce_sum divided by the number of elements: floating with one rounding, NaN for the mean "
              "of nothing; integers exact, rounded half to "
              "even, 0 for the mean of nothing.");
}
}  // namespace reduce_mean_op

namespace reduce_prod_op {
OpSpec define() {
  return make(Reduction::prod, "Product along axes",
              "Floating: accumulated in float32 (f64: in double) in a fixed order, one rounding. Integers: in index "
              "order, clamped to the type's range after "
              "every factor. The product "
              "of nothing is 1.");
}
}  // namespace reduce_prod_op

namespace reduce_max_op {
OpSpec define() {
  return make(Reduction::max, "Largest element along axes",
              "NaN where any element is NaN. The maximum of nothing is -inf, or the lowest value of an integer type; "
              "of bool, false.");
}
}  // namespace reduce_max_op

namespace reduce_min_op {
OpSpec define() {
  return make(Reduction::min, "Smallest element along axes",
              "NaN where any element is NaN. The minimum of nothing is +inf, or the highest value of an integer type; "
              "of bool, true.");
}
}  // namespace reduce_min_op

}  // namespace cermet
