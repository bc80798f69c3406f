#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "op/cast.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cast_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  if (p.attributes.text("out_dtype").empty()) bad_attribute(p, "out_dtype", dtypes::all.to_string());
  const DType to = dtype_attribute(p, "out_dtype", DType::f32, dtypes::all);
  if (to != DType::f8_e8m0 && p.attributes.text("rounding") == "up")
    bad_attribute(p, "rounding", "zero or nearest; up is for f8_e8m0");
  return {{to, p.input(0).dims}};
}

/// Exact whatever the type: a long double holds every 64-bit integer on x86 and ARM.
long double load_exactly(const TensorView& x, std::int64_t i) {
  if (x.dtype == DType::i64) return static_cast<long double>(x.as<const std::int64_t>()[element_offset(x, i)]);
  if (x.dtype == DType::u64) return static_cast<long double>(x.as<const std::uint64_t>()[element_offset(x, i)]);
  return load(x, i);
}

/// A double that any narrower type rounds as it would round the value: where no double is the value, the one towards
/// zero with its last bit set.
double round_to_odd(long double value) {
  const double nearest = static_cast<double>(value);
  if (static_cast<long double>(nearest) == value || std::isnan(value)) return nearest;
  const double cut =
      std::abs(static_cast<long double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0) : nearest;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(cut) | 1u);
}

/// An integer, or of u64 what has the same bits.
std::int64_t load_bits(const TensorView& x, std::int64_t i) {
  return x.dtype == DType::u64 ? static_cast<std::int64_t>(x.as<const std::uint64_t>()[element_offset(x, i)])
                               : load_integer(x, i);
}

void store_low_bits(const TensorView& y, std::int64_t i, std::int64_t value) {
  const auto bytes = byte_size(y.dtype);
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(y.as<char>() + element_offset(y, i) * bytes, &value, static_cast<std::size_t>(bytes));
}

template <class T>
T clamped(long double whole) {
  if (std::isnan(whole)) return 0;
  if (whole >= static_cast<long double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (whole <= static_cast<long double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(whole);
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const format::Rounding rounding = cast_rounding(call.attributes);
  const bool to_zero = rounding == format::Rounding::zero, to_double = call.attributes.text("out_dtype") == "f64";
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const long double value = load_exactly(x, i), whole = to_zero ? std::trunc(value) : std::nearbyint(value);
    if (x.dtype == y.dtype) copy_element(x, i, y, i);
    else if (is_integer(x.dtype) && is_integer(y.dtype)) store_low_bits(y, i, load_bits(x, i));
    else if (y.dtype == DType::i64) y.as<std::int64_t>()[element_offset(y, i)] = clamped<std::int64_t>(whole);
    else if (y.dtype == DType::u64) y.as<std::uint64_t>()[element_offset(y, i)] = clamped<std::uint64_t>(whole);
    else if (is_integer(y.dtype)) store(y, i, static_cast<double>(whole));
    else if (y.dtype == DType::f8_e8m0) store(y, i, to_float(format::to_e8m0(format::round_to_odd(value), rounding)));
    else store(y, i, to_double ? static_cast<double>(value) : round_to_odd(value));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const Fill hostile = values({0,
                               -0.0,
                               0.5,
                               1.5,
                               2.5,
                               -0.5,
                               -1.5,
                               2.75,
                               -2.75,
                               127,
                               127.5,
                               128,
                               -128.5,
                               -129,
                               255.5,
                               256,
                               448,
                               464,
                               480,
                               57344,
                               65504,
                               65520,
                               70000,
                               1e-8,
                               -1e-8,
                               3e9,
                               -3e9,
                               1e19,
                               -1e19,
                               2e38,
                               1e300,
                               1e-300,
                               NAN,
                               INFINITY,
                               -INFINITY,
                               1 + 0x1p-9 + 0x1p-40,
                               1.0625 + 0x1p-30});
  for (int a = 0; a < dtype_count; ++a)
    for (int b = 0; b < dtype_count; ++b) {
      const auto from = static_cast<DType>(a), to = static_cast<DType>(b);
      list.push_back({fmt::format("{}_to_{}", name_of(from), name_of(to)),
                      {CaseOperand{{from, {3, 37}}, hostile}},
                      {{"out_dtype", std::string(name_of(to))}}});
    }
  for (DType from : {DType::f32, DType::f16, DType::f64, DType::i64})
    for (std::string rounding : {"nearest", "up"})
      list.push_back({fmt::format("{}_to_f8_e8m0_{}", name_of(from), rounding),
                      {CaseOperand{{from, {37}}, hostile}},
                      {{"out_dtype", "f8_e8m0"}, {"rounding", rounding}}});
  for (DType to : {DType::i8, DType::u8, DType::i32, DType::i64})
    list.push_back({fmt::format("nearest_{}", name_of(to)),
                    {CaseOperand{{DType::f32, {37}}, hostile}},
                    {{"out_dtype", std::string(name_of(to))}, {"rounding", "nearest"}}});
  const Fill wide = values(
      {0,     1,     -1,         127,          128,           200,          -129,         255,    256,    257,    32768,
       65535, 65537, 2147483647, 2147483648.0, -2147483649.0, 4294967295.0, 4294967301.0, 0x1p53, 0x1p62, -0x1p63});
  for (const auto& [from, to] : std::vector<std::pair<DType, DType>>{{DType::i64, DType::i32},
                                                                     {DType::i64, DType::u8},
                                                                     {DType::i64, DType::i8},
                                                                     {DType::i64, DType::u64},
                                                                     {DType::u64, DType::i64},
                                                                     {DType::u32, DType::i32},
                                                                     {DType::i32, DType::u16},
                                                                     {DType::i16, DType::i8}})
    list.push_back({fmt::format("low_bits_{}_to_{}", name_of(from), name_of(to)),
                    {CaseOperand{{from, {2, 21}}, wide}},
                    {{"out_dtype", std::string(name_of(to))}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {4, 33}}, normal(40), 7}}, {{"out_dtype", "i8"}}});
  list.push_back({"strided_same", {CaseOperand{{DType::bf16, {4, 33}}, normal(40), 7}}, {{"out_dtype", "bf16"}}});
  list.push_back({"long_rows", {CaseOperand{{DType::f32, {3, 1000}}, normal(100)}}, {{"out_dtype", "f8_e4m3"}}});
  list.push_back({"scalar", {CaseOperand{{DType::f32, {}}}}, {{"out_dtype", "f16"}}});
  list.push_back({"empty", {CaseOperand{{DType::f32, {0, 5}}}}, {{"out_dtype", "i8"}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Conversion to another element type",
      .semantics =
          "To a floating type: one rounding to nearest even. f32, bf16, f16 and f8_e5m2 overflow as IEEE says, but "
          "finite values saturate in all types of 8 "
          "bits; "
          "those without infinities turn them into NaN. f8_e4m3fnuz and f8_e5m2fnuz have no negative zero. f8_e8m0 has "
          "powers of two, chosen as the attribute "
          "says (`zero` takes the next below, `nearest` half to the larger, `up` the next above); 0 becomes the "
          "smallest, 2^-127, and negative numbers NaN. To "
          "an integer type: rounded as the attribute says (`zero` drops the fraction, as C, ONNX and PyTorch do; "
          "`nearest` "
          "takes half to even), then clamped to the type's range; NaN gives 0 (ONNX leaves what does not fit open; "
          "NumPy and ONNX Runtime give what the "
          "processor's conversion gives). From an integer to an integer type: the low bits, as in two's complement. To "
          "bool: whether the element differs from "
          "0, so NaN is true. From bool: 0 or 1.",
      .inputs = {{"x", dtypes::all, "[..]", "elements"}},
      .outputs = {{"y", dtypes::all, "[..]", "the same values in the other type"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; must be given"},
                     {"rounding",
                      std::string("zero"),
                      "from floating to integer types, and to f8_e8m0, to which alone `up` applies",
                      {"zero", "nearest", "up"}}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::cast_op

namespace cermet {

format::Rounding cast_rounding(const Attributes& attributes) {
  const std::string& name = attributes.text("rounding");
  return name == "zero" ? format::Rounding::zero : name == "nearest" ? format::Rounding::nearest : format::Rounding::up;
}

}  // namespace cermet
