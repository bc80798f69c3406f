// Definitions of the elementwise operators: one generic builder over the rows of pointwise.inc.
#include <array>
#include <cstring>

#include "op/pointwise_math.hpp"
#include "op/pointwise_types.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

using std::abs, std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::cos, std::cosh,
    std::erf, std::exp, std::expm1;
using std::floor, std::log, std::log1p, std::pow, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
using namespace pointwise_types;
enum class Result { same, truth };
enum class Properties { none, commutative, group };

/// A row as data. The functions compute in double or in integers; those of values that the types do not hold are empty.
struct Row {
  std::string_view text;
  DTypeSet types;
  double depth;
  std::vector<AttributeSpec> parameters = {};
  double (*value)(double a, double b, const double* parameters) = nullptr;
  double (*terms)(double a, double b, double y, const double* parameters) = nullptr;
  Integer (*integer)(Integer a, Integer b) = nullptr;
  Natural (*natural)(Natural a, Natural b) = nullptr;
  Result result = Result::same;
  Properties properties = Properties::none;
};

bool is_exact(DType dtype) { return !is_floating(dtype); }

/// The bits of an element of an integer type as those of a wide integer, and back: what a narrow type does not hold is
/// cut off.
std::uint64_t read_bits(const TensorView& view, std::int64_t offset) {
  std::uint64_t bits = 0;
  if (size_of(view.dtype) < sizeof bits)
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(format::load_element(view.data, view.dtype, offset)));
  std::memcpy(&bits, view.as<const std::byte>() + offset * 8, sizeof bits);  // exact beyond 2^53, which a double is not
  return bits;
}

void write_bits(const TensorView& view, std::int64_t offset, std::uint64_t bits) {
  const std::size_t bytes = size_of(view.dtype);
  std::memcpy(view.as<std::byte>() + offset * static_cast<std::int64_t>(bytes), &bits,
              bytes);  // the low ones come first
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
  for (std::size_t i = 0; i < row.parameters.size(); ++i)
    parameters[i] = call.attributes.number(row.parameters[i].name);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t at_a = broadcast_offset(a, y.shape, i), at_b = broadcast_offset(b, y.shape, i),
                       at_y = element_offset(y, i);
    if (is_exact(a.dtype)) {
      const std::uint64_t left = read_bits(a, at_a), right = read_bits(b, at_b);
      if (natural.contains(a.dtype)) write_bits(y, at_y, row.natural(left, right).value);
      else write_bits(y, at_y, row.integer(Integer::wrap(left), Integer::wrap(right)).bits().value);
      continue;
    }
    const double va = format::load_element(a.data, a.dtype, at_a), vb = format::load_element(b.data, b.dtype, at_b);
    const double result = row.value(va, vb, parameters.data());
    format::store_element(y.data, y.dtype, at_y, result);
    // An intermediate below the smallest normal number may be 0, which is 2^-126 in units of 2^-24; an exact operator
    // has none.
    const double smallest = a.dtype == DType::f64 ? 0x1p-970 : 0x1p-102,
                 subnormal = row.depth > 0 ? smallest * std::max(1.0, abs(va)) : 0;
    note_magnitude(call, 0, i, row.terms(va, vb, result, parameters.data()) + subnormal);
  }
}

const std::vector<double>& special_values() {
  static const std::vector<double> list{0.0,    -0.0,  1,        -1,   0.5,       -0.5, 1.5,   2.5, -2.5,  1e-10,
                                        -1e-10, 1e-40, 3.25,     10,   -10,       87.5, 88.5,  89,  -87.5, -89,
                                        -104,   -120,  1e4,      -1e4, 1e6,       3e38, -3e38, 5,   -5.25, 16777217,
                                        NAN,    -1,    INFINITY, 2,    -INFINITY, 0.7,  -0.9};
  return list;
}

constexpr DType common_types[] = {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::boolean};
constexpr DType other_types[] = {DType::f64, DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64};

/// Integers of narrow types are any; where others are small, so are their products.
Fill fill_for(DType dtype) {
  switch (dtype) {
    case DType::boolean: return integers(0, 1);
    case DType::i8: return integers(-128, 127);
    case DType::u8: return integers(0, 255);
    case DType::u16: return integers(0, 65535);
    case DType::u32: return integers(0, 4294967295);
    case DType::u64: return integers(0, std::int64_t{1} << 62);
    default: return is_exact(dtype) ? integers(-1000, 1000) : normal(2);
  }
}

/// Where an operator is tried on shapes alone.
DType first_type(const Row& row) {
  return row.types.contains(DType::f32) ? DType::f32 : row.types.contains(DType::boolean) ? DType::boolean : DType::u32;
}

std::vector<Case> unary_cases(const Row& row) {
  std::vector<Case> list;
  for (DType t : common_types) {
    if (!row.types.contains(t)) continue;
    for (std::int64_t n : {1, 7, 129})
      list.push_back({fmt::format("{}_{}", name_of(t), n), {CaseOperand{{t, {3, n}}, fill_for(t)}}});
    list.push_back({fmt::format("{}_strided", name_of(t)), {CaseOperand{{t, {2, 3, 33}}, fill_for(t), 5}}});
    list.push_back({fmt::format("{}_long", name_of(t)), {CaseOperand{{t, {5000}}, fill_for(t)}}});
  }
  for (DType t : other_types) {
    if (!row.types.contains(t)) continue;
    list.push_back({fmt::format("{}_strided", name_of(t)), {CaseOperand{{t, {2, 3, 33}}, fill_for(t), 5}}});
    list.push_back({fmt::format("{}_long", name_of(t)), {CaseOperand{{t, {1300}}, fill_for(t)}}});
  }
  list.push_back({"nothing", {CaseOperand{{first_type(row), {0, 4}}}}});
  list.push_back({"scalar", {CaseOperand{{first_type(row), {}}, constant(1)}}});
  if (row.types.contains(DType::f32))
    list.push_back({"special", {CaseOperand{{DType::f32, {37}}, values(special_values())}}});
  if (row.types.contains(DType::bf16))
    list.push_back({"special_bf16", {CaseOperand{{DType::bf16, {37}}, values(special_values())}}});
  if (row.types.contains(DType::f64))
    list.push_back({"special_f64", {CaseOperand{{DType::f64, {37}}, values(special_values())}}});
  if (row.types.contains(DType::i32))
    list.push_back({"extreme_i32", {CaseOperand{{DType::i32, {3}}, values({-2147483648.0, 2147483647.0, 0})}}});
  if (row.types.contains(DType::i64))
    list.push_back({"extreme_i64", {CaseOperand{{DType::i64, {4}}, values({-0x1p63, 0x1p63, 0, -1})}}});
  if (row.types.contains(DType::u64))
    list.push_back({"extreme_u64", {CaseOperand{{DType::u64, {4}}, values({0x1p64, 0x1p63, 0, 1})}}});
  return list;
}

std::vector<Case> binary_cases(const Row& row) {
  std::vector<Case> list;
  const bool shifts = !row.types.contains(DType::i32) && row.types.contains(DType::u32);
  const auto add = [&](std::string name, DType t, Dims a, Dims b, std::int64_t padding = 0) {
    const Fill second = shifts ? integers(0, 70) : fill_for(t);
    list.push_back(
        {std::move(name),
         {CaseOperand{{t, std::move(a)}, fill_for(t), padding}, CaseOperand{{t, std::move(b)}, second, 2 * padding}}});
  };
  for (DType t : common_types) {
    if (!row.types.contains(t)) continue;
    add(fmt::format("{}_same", name_of(t)), t, {3, 129}, {3, 129});
    add(fmt::format("{}_row", name_of(t)), t, {3, 40}, {40});
    add(fmt::format("{}_column", name_of(t)), t, {3, 1}, {3, 40});
  }
  for (DType t : other_types) {
    if (!row.types.contains(t)) continue;
    add(fmt::format("{}_same", name_of(t)), t, {3, 700}, {3, 700});
    add(fmt::format("{}_outer", name_of(t)), t, {3, 1}, {1, 40}, 3);
  }
  const DType t = first_type(row);
  add("outer", t, {7, 1}, {1, 9});
  add("middle", t, {2, 1, 5}, {2, 3, 5}, 3);
  add("scalar", t, {}, {4, 5});
  add("two_scalars", t, {}, {});
  add("strided", t, {2, 3, 33}, {2, 3, 33}, 5);
  add("long", t, {2, 3000}, {2, 3000});
  add("long_row", t, {2, 3000}, {3000});
  add("nothing", t, {0, 4}, {1, 4});
  const auto add_pairs = [&](std::string name, DType type,
                             const std::vector<double>& list_of_values) {  // every value against every other
    std::vector<double> each, all;
    for (double a : list_of_values)
      for (double b : list_of_values) {
        each.push_back(a);
        all.push_back(b);
      }
    const auto n = static_cast<std::int64_t>(each.size());
    list.push_back({std::move(name), {CaseOperand{{type, {n}}, values(each)}, CaseOperand{{type, {n}}, values(all)}}});
  };
  if (row.types.contains(DType::f32)) add_pairs("special", DType::f32, special_values());
  if (row.types.contains(DType::f64)) add_pairs("special_f64", DType::f64, special_values());
  if (row.types.contains(DType::i32)) {
    list.push_back({"extreme_i32",
                    {CaseOperand{{DType::i32, {4}}, values({2147483647, -2147483648.0, 65537, -1})},
                     CaseOperand{{DType::i32, {4}}, values({1, -1, 65537, 7})}}});
    for (DType type : {DType::i8, DType::i16, DType::i32, DType::i64})
      add_pairs(fmt::format("extremes_{}", name_of(type)), type,
                {-0x1p63, 0x1p63, -129, -128, -7, -3, -2, -1, 0, 1, 2, 3, 7, 127, 128, 65537});
  }
  if (row.types.contains(DType::u32))
    for (DType type : {DType::u8, DType::u16, DType::u32, DType::u64})
      add_pairs(fmt::format("extremes_{}", name_of(type)), type,
                {0x1p64, 0x1p63, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 200, 255, 65537});
  return list;
}

double result_elements(const Problem& p) { return static_cast<double>(p.outputs[0].elements().value(p.maximum)); }

OpSpec unary(const Row& row) {
  return {
      .category = "Elementwise",
      .summary = row.text,
      .semantics = row.types.contains(DType::f32) ? "Computed in float32 (f64: in double) and rounded once to the type "
                                                    "of the operand. NaN propagates unless stated otherwise."
                                                  : "Each element on its own; exact.",
      .inputs = {{"x", row.types, "[..]", "operand"}},
      .outputs = {{"y", row.result == Result::truth ? truth : row.types, "[..]", row.text}},
      .attributes = row.parameters,
      .infer = [result = row.result](const Problem& p) -> std::vector<TensorType> {
        return {{result == Result::truth ? DType::boolean : p.input(0).dtype, p.input(0).dims}};
      },
      .reference = [row](const ReferenceCall& call) { reference(row, false, call); },
      .operations = result_elements,
      .rounding_depth = [depth = row.depth](const Problem&) { return depth; },
      .cases = [row] { return unary_cases(row); },
  };
}

OpSpec binary(const Row& row) {
  return {
      .category = "Elementwise",
      .summary = row.text,
      .semantics = row.types.contains(DType::f32) ? "Operands have one type and broadcast as in NumPy. Floating types "
                                                    "are computed in float32 (f64: in double) and rounded once."
                                                  : "Operands have one type and broadcast as in NumPy.",
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
Row make_row(std::string_view text, DTypeSet types, double depth, std::vector<AttributeSpec> parameters = {},
             Result result = Result::same, Properties properties = Properties::none) {
  Row row{text, types, depth, std::move(parameters)};
  row.result = result, row.properties = properties;
  if constexpr (Functions::types.contains(DType::f32)) {
    row.value = [](double a, double b, const double* p) { return Functions::template apply<double>(a, b, p[0], p[1]); };
    row.terms = &Functions::terms;
  }
  if constexpr (Functions::types.contains(DType::i32) || Functions::types.contains(DType::boolean))
    row.integer = [](Integer a, Integer b) { return Functions::template apply<Integer>(a, b, 0, 0); };
  if constexpr (Functions::types.contains(DType::u32))
    row.natural = [](Natural a, Natural b) { return Functions::template apply<Natural>(a, b, 0, 0); };
  return row;
}

// One struct per row: its expressions for any value type V. Unused operands and parameters give no warning.
#define FUNCTIONS(name, row_types, FIRST, P, Q, terms_expression, expression)                                    \
  struct name##_row {                                                                                            \
    static constexpr DTypeSet types = row_types;                                                                 \
    template <class V>                                                                                           \
    static V apply([[maybe_unused]] V FIRST, [[maybe_unused]] V b, [[maybe_unused]] V P, [[maybe_unused]] V Q) { \
      return expression;                                                                                         \
    }                                                                                                            \
    static double terms([[maybe_unused]] double FIRST, [[maybe_unused]] double b, [[maybe_unused]] double y,     \
                        [[maybe_unused]] const double* parameters) {                                             \
      [[maybe_unused]] const double P = parameters[0], Q = parameters[1];                                        \
      return terms_expression;                                                                                   \
    }                                                                                                            \
  };
#define UNARY(name, types, result, depth, terms, text, expression) FUNCTIONS(name, types, x, p_, q_, terms, expression)
#define UNARY1(name, types, result, depth, p, p_default, terms, text, expression) \
  FUNCTIONS(name, types, x, p, q_, terms, expression)
#define UNARY2(name, types, result, depth, p, p_default, q, q_default, terms, text, expression) \
  FUNCTIONS(name, types, x, p, q, terms, expression)
#define BINARY(name, types, result, properties, depth, terms, text, expression) \
  FUNCTIONS(name, types, a, p_, q_, terms, expression)
#include "op/pointwise.inc"

}  // namespace

#define UNARY(name, types, result, depth, terms, text, expression)                                  \
  namespace name##_op {                                                                             \
    OpSpec define() { return unary(make_row<name##_row>(text, types, depth, {}, Result::result)); } \
  }
#define UNARY1(name, types, result, depth, p, p_default, terms, text, expression)                                   \
  namespace name##_op {                                                                                             \
    OpSpec define() {                                                                                               \
      return unary(make_row<name##_row>(text, types, depth, {{#p, p_default, "see the formula"}}, Result::result)); \
    }                                                                                                               \
  }
#define UNARY2(name, types, result, depth, p, p_default, q, q_default, terms, text, expression)                   \
  namespace name##_op {                                                                                           \
    OpSpec define() {                                                                                             \
      return unary(make_row<name##_row>(text, types, depth,                                                       \
                                        {{#p, p_default, "see the formula"}, {#q, q_default, "see the formula"}}, \
                                        Result::result));                                                         \
    }                                                                                                             \
  }
#define BINARY(name, types, result, properties, depth, terms, text, expression)                            \
  namespace name##_op {                                                                                    \
    OpSpec define() {                                                                                      \
      return binary(make_row<name##_row>(text, types, depth, {}, Result::result, Properties::properties)); \
    }                                                                                                      \
  }
#include "op/pointwise.inc"

}  // namespace cermet
