#include "op/element_order.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::argmax_op {
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
  const bool smallest = call.attributes.flag("smallest"), last = call.attributes.flag("select_last_index");
  const auto is_nan = [&](std::int64_t at) { return is_floating(x.dtype) && std::isnan(load(x, at)); };
  for (std::int64_t row = 0; row < y.elements(); ++row) {
    std::int64_t best = 0;
    const auto key = [&](std::int64_t i) { return ordinal(x, row * length + i); };
    const auto wins = [&](std::int64_t i) {
      const bool nan = is_nan(row * length + i), other = is_nan(row * length + best);
      if (nan || other) return nan && (last || !other);
      if (key(i) == key(best)) return last;
      return smallest ? key(i) < key(best) : key(i) > key(best);
    };
    for (std::int64_t i = 1; i < length; ++i)
      if (wins(i)) best = i;
    store_integer(y, row, best);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t length : {1, 7, 16, 129, 5000})
      list.push_back({fmt::format("{}_{}", name_of(t), length), {CaseOperand{{t, {3, length}}, normal(), 5}}});
  list.push_back({"ties", {CaseOperand{{DType::f32, {4, 70}}, integers(-2, 2)}}});
  list.push_back({"vocabulary", {CaseOperand{{DType::f32, {3, 50257}}, normal(3), 3}}});
  list.push_back({"vocabulary_ties", {CaseOperand{{DType::bf16, {2, 32000}}, integers(-2, 2)}}});
  list.push_back({"all_equal", {CaseOperand{{DType::bf16, {2, 40}}, constant(-3)}}});
  list.push_back({"nan_first_wins", {CaseOperand{{DType::f32, {2, 37}}, values({1, 2, INFINITY, NAN, 5, 6, NAN})}}});
  list.push_back({"minus_infinity", {CaseOperand{{DType::f16, {2, 20}}, constant(-INFINITY)}}});
  list.push_back({"zeros_tie", {CaseOperand{{DType::f32, {2, 20}}, values({-1, -0.0, 0.0, -2})}}});
  list.push_back({"i64", {CaseOperand{{DType::f32, {2, 3, 9}}}}, {{"out_dtype", "i64"}}});
  list.push_back({"one_row", {CaseOperand{{DType::f32, {300}}}}});
  for (bool smallest : {false, true})
    for (bool last : {false, true}) {
      const Attributes attributes{{"smallest", smallest}, {"select_last_index", last}};
      const auto add = [&](std::string_view name, CaseOperand x) {
        list.push_back({fmt::format("{}{}_{}", smallest ? "smallest" : "largest", last ? "_last" : "", name),
                        {std::move(x)},
                        attributes});
      };
      // Each program costs a compilation for every architecture: the two flags meet all types together.
      for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i16, DType::u16,
                      DType::i32, DType::u32, DType::i64, DType::u64}) {
        if (smallest != last && t != DType::f32 && t != DType::i64) continue;
        add(name_of(t), {{t, {3, 129}}, is_integer(t) ? integers(-20, 20) : normal()});
        add(fmt::format("{}_ties", name_of(t)), {{t, {4, 37}}, integers(0, 3), 3});
      }
      add("nan", {{DType::f32, {2, 37}}, values({1, 2, INFINITY, NAN, -INFINITY, 6, NAN})});
      if (smallest == last)
        add("double_nan", {{DType::f64, {2, 37}}, values({1, 2, INFINITY, NAN, -INFINITY, 6, NAN})});
      if (smallest == last) add("zeros", {{DType::f16, {2, 20}}, values({0.0, -0.0})});
      if (smallest == last) add("close_doubles", {{DType::f64, {1, 4}}, values({1, 1 + 0x1p-50, 1 - 0x1p-50, 1})});
      add("wide_integers",
          {{DType::i64, {1, 5}}, values({-9223372036854775808.0, 9e18, 0, 9e18, -9223372036854775808.0})});
      if (smallest == last) add("wide_unsigned", {{DType::u64, {1, 4}}, values({1e19, 1.8e19, 0, 9e18})});
      add("long", {{DType::f32, {2, 20000}}, integers(-30, 30)});
      if (smallest == last) add("one", {{DType::u8, {3, 1}}, integers(0, 9)});
    }
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 9}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Sampling",
      .summary = "Index of the largest or smallest element of each row",
      .semantics =
          "y[..] = the i that maximizes (`smallest`: minimizes) x[.., i]; of equal elements the lowest i, or the "
          "highest with select_last_index. A NaN wins "
          "over "
          "every number, as in PyTorch; the two zeros are equal.",
      .inputs = {{"x", dtypes::real | dtypes::integer | DTypeSet{DType::f64}, "[.., V]", "rows; V at least 1",
                  Mapping::many_to_many}},
      .outputs = {{"y", dtypes::index, "[..]", "indices"}},
      .attributes = {{"out_dtype", std::string(), "element type of y: i32 or i64; i32 where empty"},
                     {"smallest", false, "find the smallest element instead"},
                     {"select_last_index", false, "of equal elements, the last"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet::argmax_op
