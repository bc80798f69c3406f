// Definitions of the elementwise operators: one generic builder over the rows of pointwise.inc.
#include <array>

#include "op/infer.hpp"
#include "op/operator.hpp"
#include "op/pointwise_math.hpp"
#include "op/reference.hpp"

namespace cermet {
namespace {

using std::abs, std::ceil, std::cos, std::erf, std::exp, std::expm1, std::floor, std::log, std::log1p, std::pow, std::sin, std::sqrt, std::tanh;

constexpr DTypeSet real = dtypes::real, number = dtypes::real | dtypes::index, truth{DType::boolean};
enum class Result { same, truth };
enum class Properties { none, commutative, group };

/// A row as data. The functions compute in double; integer ones are empty where the types hold no integers.
struct Row {
  std::string_view text;
  DTypeSet types;
  double depth;
  std::vector<AttributeSpec> parameters = {};
  double (*value)(double a, double b, const double* parameters) = nullptr;
  double (*terms)(double a, double b, double y, const double* parameters) = nullptr;
  Integer (*integer)(Integer a, Integer b) = nullptr;
  Result result = Result::same;
  Properties properties = Properties::none;
};

bool is_exact(DType dtype) { return !is_floating(dtype); }

std::int64_t read_integer(const TensorView& view, std::int64_t offset) {
  if (view.dtype == DType::i64) return view.as<const std::int64_t>()[offset];  // exact beyond 2^53, which a double is not
  return static_cast<std::int64_t>(format::load_element(view.data, view.dtype, offset));
}

void write_integer(const TensorView& view, std::int64_t offset, std::int64_t value) {
  if (view.dtype == DType::i64) view.as<std::int64_t>()[offset] = value;
  else if (view.dtype == DType::i32) view.as<std::int32_t>()[offset] = static_cast<std::int32_t>(value);
  else format::store_element(view.data, view.dtype, offset, static_cast<double>(value));
}

/// Offset in `view` of the element that broadcasting pairs with dense index `index` of a tensor of shape `shape`.
std::int64_t broadcast_offset(const TensorView& view, const Shape& shape, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = shape.rank() - 1, own = view.shape.rank() - 1; axis >= 0; --axis, --own) {
    if (own >= 0 && view.shape[own] != 1) offset += index % shape[axis] * view.strides[own];
    index /= shape[axis];
  }
  return offset;
}

void reference(const Row& row, bool binary, const ReferenceCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[binary ? 1 : 0], &y = call.outputs[0];
  std::array<double, 2> parameters{};
  for (std::size_t i = 0; i < row.parameters.size(); ++i) parameters[i] = call.attributes.number(row.parameters[i].name);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t at_a = broadcast_offset(a, y.shape, i), at_b = broadcast_offset(b, y.shape, i), at_y = element_offset(y, i);
    if (is_exact(a.dtype)) {
      write_integer(y, at_y, row.integer(read_integer(a, at_a), read_integer(b, at_b)).value);
      continue;
    }
    const double va = format::load_element(a.data, a.dtype, at_a), vb = format::load_element(b.data, b.dtype, at_b);
    const double result = row.value(va, vb, parameters.data());
    format::store_element(y.data, y.dtype, at_y, result);
    // A float32 intermediate below 2^-126 is subnormal and keeps fewer bits; an exact operator has none.
    const double subnormal = row.depth > 0 ? 0x1p-123 * std::max(1.0, abs(va)) : 0;
    note_magnitude(call, 0, i, row.terms(va, vb, result, parameters.data()) + subnormal);
  }
}

const std::vector<double>& special_values() {
  static const std::vector<double> list{0.0,   -0.0, 1,     -1,       0.5, -0.5,  1.5,      2.5,  -2.5,      1e-10, -1e-10, 1e-40, 3.25,
                                        10,    -10,  87.5,  88.5,     89,  -87.5, -89,      -104, -120,      1e4,   -1e4,   1e6,   3e38,
                                        -3e38, 5,    -5.25, 16777217, NAN, -1,    INFINITY, 2,    -INFINITY, 0.7,   -0.9};
  return list;
}

Fill fill_for(DType dtype) {
  if (dtype == DType::boolean) return integers(0, 1);
  return is_exact(dtype) ? integers(-1000, 1000) : normal(2);
}

std::vector<Case> unary_cases(const Row& row) {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::boolean}) {
    if (!row.types.contains(t)) continue;
    for (std::int64_t n : {1, 7, 129}) list.push_back({fmt::format("{}_{}", name_of(t), n), {CaseOperand{{t, {3, n}}, fill_for(t)}}});
    list.push_back({fmt::format("{}_strided", name_of(t)), {CaseOperand{{t, {2, 3, 33}}, fill_for(t), 5}}});
    list.push_back({fmt::format("{}_long", name_of(t)), {CaseOperand{{t, {5000}}, fill_for(t)}}});
  }
  list.push_back({"nothing", {CaseOperand{{row.types.contains(DType::f32) ? DType::f32 : DType::boolean, {0, 4}}}}});
  list.push_back({"scalar", {CaseOperand{{row.types.contains(DType::f32) ? DType::f32 : DType::boolean, {}}, constant(1)}}});
  if (row.types.contains(DType::f32)) list.push_back({"special", {CaseOperand{{DType::f32, {37}}, values(special_values())}}});
  if (row.types.contains(DType::bf16)) list.push_back({"special_bf16", {CaseOperand{{DType::bf16, {37}}, values(special_values())}}});
  if (row.types.contains(DType::i32)) list.push_back({"extreme_i32", {CaseOperand{{DType::i32, {3}}, values({-2147483648.0, 2147483647.0, 0})}}});
  return list;
}

std::vector<Case> binary_cases(const Row& row) {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims a, Dims b, std::int64_t padding = 0) {
    list.push_back({std::move(name), {CaseOperand{{t, std::move(a)}, fill_for(t), padding}, CaseOperand{{t, std::move(b)}, fill_for(t), 2 * padding}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::boolean}) {
    if (!row.types.contains(t)) continue;
    add(fmt::format("{}_same", name_of(t)), t, {3, 129}, {3, 129});
    add(fmt::format("{}_row", name_of(t)), t, {3, 40}, {40});
    add(fmt::format("{}_column", name_of(t)), t, {3, 1}, {3, 40});
  }
  const DType t = row.types.contains(DType::f32) ? DType::f32 : DType::boolean;
  add("outer", t, {7, 1}, {1, 9});
  add("middle", t, {2, 1, 5}, {2, 3, 5}, 3);
  add("scalar", t, {}, {4, 5});
  add("two_scalars", t, {}, {});
  add("strided", t, {2, 3, 33}, {2, 3, 33}, 5);
  add("long", t, {2, 3000}, {2, 3000});
  add("long_row", t, {2, 3000}, {3000});
  add("nothing", t, {0, 4}, {1, 4});
  if (!row.types.contains(DType::f32)) return list;
  std::vector<double> each, all;  // every special value against every other
  for (double a : special_values())
    for (double b : special_values()) {
      each.push_back(a);
      all.push_back(b);
    }
  const auto n = static_cast<std::int64_t>(each.size());
  list.push_back({"special", {CaseOperand{{DType::f32, {n}}, values(each)}, CaseOperand{{DType::f32, {n}}, values(all)}}});
  if (row.types.contains(DType::i32))
    list.push_back(
        {"extreme_i32",
         {CaseOperand{{DType::i32, {4}}, values({2147483647, -2147483648.0, 65537, -1})}, CaseOperand{{DType::i32, {4}}, values({1, -1, 65537, 7})}}});
  return list;
}

double result_elements(const Problem& p) { return static_cast<double>(p.outputs[0].elements().value(p.maximum)); }

OpSpec define(const Row& row) {
  return {
      .category = "Elementwise",
      .summary = row.text,
      .semantics = row.types.contains(DType::f32) ? "Computed in float32, rounded once to the type of the operand. NaN propagates unless stated otherwise."
                                                  : "Each element on its own; exact.",
      .inputs = {{"x", row.types, "[..]", "operand"}},
      .outputs = {{"y", row.types, "[..]", row.text}},
      .attributes = row.parameters,
      .infer = [](const Problem& p) -> std::vector<TensorType> { return {p.input(0)}; },
      .reference = [row](const ReferenceCall& call) { reference(row, false, call); },
      .operations = result_elements,
      .rounding_depth = [depth = row.depth](const Problem&) { return depth; },
      .cases = [row] { return unary_cases(row); },
  };
}

OpSpec define_binary(const Row& row) {
  return {
      .category = "Elementwise",
      .summary = row.text,
      .semantics = row.types.contains(DType::f32) ? "Operands have one type and broadcast as in NumPy. Floating types are computed in float32 and rounded once."
                                                  : "Operands broadcast as in NumPy.",
      .inputs = {{"a", row.types, "[..]", "first operand"}, {"b", row.types, "[..]", "second operand"}},
      .outputs = {{"y", row.result == Result::truth ? truth : row.types, "[..]", row.text}},
      .infer = [result = row.result](const Problem& p) -> std::vector<TensorType> {
        expect_dtype(p, 1, p.input(0).dtype, "that of a");
        return {{result == Result::truth ? DType::boolean : p.input(0).dtype, broadcast_dims(p, 0, 1)}};
      },
      .reference = [row](const ReferenceCall& call) { reference(row, true, call); },
      .operations = result_elements,
      .rounding_depth = [depth = row.depth](const Problem&) { return depth; },
      .cases = [row] { return binary_cases(row); },
      .associative = row.properties == Properties::group,
      .commutative = row.properties != Properties::none,
  };
}

template <class Functions>
Row make_row(std::string_view text, DTypeSet types, double depth, std::vector<AttributeSpec> parameters = {}, Result result = Result::same,
             Properties properties = Properties::none) {
  Row row{text, types, depth, std::move(parameters), &Functions::value, &Functions::terms, nullptr, result, properties};
  if constexpr (Functions::types.contains(DType::i32) || Functions::types.contains(DType::boolean))
    row.integer = [](Integer a, Integer b) { return Functions::template apply<Integer>(a, b, 0, 0); };
  return row;
}

// One struct per row: its expressions for any value type V. Unused operands and parameters give no warning.
#define FUNCTIONS(name, row_types, FIRST, P, Q, terms_expression, expression)                                                                             \
  struct name##_row {                                                                                                                                     \
    static constexpr DTypeSet types = row_types;                                                                                                          \
    template <class V>                                                                                                                                    \
    static V apply([[maybe_unused]] V FIRST, [[maybe_unused]] V b, [[maybe_unused]] V P, [[maybe_unused]] V Q) {                                          \
      return expression;                                                                                                                                  \
    }                                                                                                                                                     \
    static double value(double first, double second, const double* p) { return apply<double>(first, second, p[0], p[1]); }                                \
    static double terms([[maybe_unused]] double FIRST, [[maybe_unused]] double b, [[maybe_unused]] double y, [[maybe_unused]] const double* parameters) { \
      [[maybe_unused]] const double P = parameters[0], Q = parameters[1];                                                                                 \
      return terms_expression;                                                                                                                            \
    }                                                                                                                                                     \
  };
#define UNARY(name, types, depth, terms, text, expression) FUNCTIONS(name, types, x, p_, q_, terms, expression)
#define UNARY1(name, types, depth, p, p_default, terms, text, expression) FUNCTIONS(name, types, x, p, q_, terms, expression)
#define UNARY2(name, types, depth, p, p_default, q, q_default, terms, text, expression) FUNCTIONS(name, types, x, p, q, terms, expression)
#define BINARY(name, types, result, properties, depth, terms, text, expression) FUNCTIONS(name, types, a, p_, q_, terms, expression)
#include "op/pointwise.inc"

}  // namespace

#define UNARY(name, types, depth, terms, text, expression) \
  OpSpec define_##name() { return define(make_row<name##_row>(text, types, depth)); }
#define UNARY1(name, types, depth, p, p_default, terms, text, expression) \
  OpSpec define_##name() { return define(make_row<name##_row>(text, types, depth, {{#p, p_default, "see the formula"}})); }
#define UNARY2(name, types, depth, p, p_default, q, q_default, terms, text, expression) \
  OpSpec define_##name() { return define(make_row<name##_row>(text, types, depth, {{#p, p_default, "see the formula"}, {#q, q_default, "see the formula"}})); }
#define BINARY(name, types, result, properties, depth, terms, text, expression) \
  OpSpec define_##name() { return define_binary(make_row<name##_row>(text, types, depth, {}, Result::result, Properties::properties)); }
#include "op/pointwise.inc"

}  // namespace cermet
