// Elementwise operators.
#include <algorithm>
#include <limits>

#include "onnx/lowering.hpp"
#include "onnx/packed_integers.hpp"

namespace cermet::onnx {

#define UNARY(name, kind) \
  void lower_##name(Lowering& l) { l.set(0, l.unary(OpKind::kind, l.in(0))); }
UNARY(abs, abs)
UNARY(neg, neg)
UNARY(exp, exp)
UNARY(log, log)
UNARY(sqrt, sqrt)
UNARY(reciprocal, reciprocal)
UNARY(sin, sin)
UNARY(cos, cos)
UNARY(tanh, tanh)
UNARY(erf, erf)
UNARY(floor, floor)
UNARY(ceil, ceil)
UNARY(round, round)
UNARY(sigmoid, sigmoid)
UNARY(relu, relu)
UNARY(softplus, softplus)
UNARY(softsign, softsign)
UNARY(logical_not, logical_not)
UNARY(sign, sign)
UNARY(tan, tan)
UNARY(asin, asin)
UNARY(acos, acos)
UNARY(atan, atan)
UNARY(sinh, sinh)
UNARY(cosh, cosh)
UNARY(asinh, asinh)
UNARY(acosh, acosh)
UNARY(atanh, atanh)
UNARY(is_nan, is_nan)
UNARY(bitwise_not, bitwise_not)
#undef UNARY

namespace {

/// Operand 1. Before opset 7 it broadcasts where the attribute says so, from the given axis on.
Operand second(Lowering& l) {
  const Operand a = l.in(0), b = l.in(1);
  if (l.version() >= 7 || l.integer("broadcast", 0) == 0 || !l.has_attribute("axis")) return b;
  const int axis = l.axis(l.integer("axis", 0), l.rank(a)), rank = l.rank(b);
  l.expect(axis + rank <= l.rank(a), "attribute axis: expected an operand 1 that fits behind it, found {} and {}",
           l.type(b).to_string(), axis);
  Dims dims = l.dims(b);
  dims.insert(dims.end(), static_cast<std::size_t>(l.rank(a) - axis - rank), 1);
  return l.reshape(b, dims);
}

}  // namespace

#define BINARY(name, kind) \
  void lower_##name(Lowering& l) { l.set(0, l.binary(OpKind::kind, l.in(0), second(l))); }
BINARY(add, add)
BINARY(sub, sub)
BINARY(mul, mul)
BINARY(div, div)
BINARY(equal, equal)
BINARY(greater, greater)
BINARY(less, less)
BINARY(greater_or_equal, greater_equal)
BINARY(less_or_equal, less_equal)
BINARY(logical_and, logical_and)
BINARY(logical_or, logical_or)
BINARY(logical_xor, logical_xor)
BINARY(bitwise_and, bitwise_and)
BINARY(bitwise_or, bitwise_or)
BINARY(bitwise_xor, bitwise_xor)
#undef BINARY

namespace {

Operand folded(Lowering& l, OpKind kind) {
  Operand result = l.in(0);
  for (std::size_t i = 1; i < l.inputs(); ++i) result = l.binary(kind, result, l.in(i));
  return result;
}

}  // namespace

void lower_max(Lowering& l) { l.set(0, folded(l, OpKind::max)); }
void lower_min(Lowering& l) { l.set(0, folded(l, OpKind::min)); }
void lower_sum(Lowering& l) { l.set(0, folded(l, OpKind::add)); }
void lower_mean(Lowering& l) {
  l.set(0, l.binary(OpKind::div, folded(l, OpKind::add), static_cast<double>(l.inputs())));
}

void lower_mod(Lowering& l) {
  l.set(0, l.binary(l.integer("fmod", 0) != 0 ? OpKind::fmod : OpKind::mod, l.in(0), l.in(1)));
}

namespace {

DType unsigned_of(DType t) {
  switch (t) {
    case DType::i8: return DType::u8;
    case DType::i16: return DType::u16;
    case DType::i32: return DType::u32;
    case DType::i64: return DType::u64;
    default: return t;
  }
}

/// The largest value of a type of 8 bits, and the middle between it and the next that there would be: a tie goes to the
/// even neighbour.
struct Fp8Range {
  double largest, middle;
  bool is_largest_even;
};

Fp8Range range_of(DType dtype) {
  switch (dtype) {
    case DType::f8_e4m3: return {448, 464, true};
    case DType::f8_e4m3fnuz: return {240, 248, false};
    default: return {57344, 61440, false};
  }
}

/// To powers of two: by round_mode, and what lies outside of them becomes the smallest or largest, or without
/// `saturate` NaN.
Operand cast_to_e8m0(Lowering& l, Operand x) {
  const std::string mode = l.text("round_mode", "up");
  l.expect(mode == "up" || mode == "down" || mode == "nearest",
           "attribute round_mode: expected up, down or nearest, found '{}'", mode);
  constexpr double smallest = 0x1p-127, largest = 0x1p127;
  x = l.cast(x, DType::f32);
  if (l.integer("saturate", 1) != 0) {
    x = l.op(OpKind::clip, {x}, {{"low", 0.0}, {"high", largest}});
  } else {
    const double beyond = mode == "up"        ? 0x1.000002p127
                          : mode == "nearest" ? 0x1.8p127
                                              : std::numeric_limits<double>::infinity();
    const Operand outside =
        l.binary(OpKind::logical_or, l.binary(OpKind::less, x, smallest), l.binary(OpKind::greater_equal, x, beyond));
    x = l.op(OpKind::where, {outside, l.binary(OpKind::mul, x, std::numeric_limits<double>::infinity()), x});
  }
  return l.op(OpKind::cast, {x}, {{"out_dtype", "f8_e8m0"}, {"rounding", mode == "down" ? "zero" : mode}});
}

/// To types of 8 bits, as ONNX has it: what does not fit becomes the largest value, infinities too, or without
/// `saturate` NaN and infinity.
Operand cast_to(Lowering& l, Operand x, DType to) {
  const DType from = l.dtype(x);
  if (from == to) return x;
  if (to == DType::f8_e8m0) return cast_to_e8m0(l, x);
  if (!is_floating(to) || size_of(to) != 1 || !is_floating(from)) return l.cast(x, to);
  const Fp8Range range = range_of(to);
  if (size_of(from) == 1 || size_of(from) == 8) x = l.cast(x, DType::f32);
  if (l.integer("saturate", 1) != 0)
    return l.cast(l.op(OpKind::clip, {x}, {{"low", -range.largest}, {"high", range.largest}}), to);
  const Operand beyond =
      l.binary(range.is_largest_even ? OpKind::greater : OpKind::greater_equal, l.unary(OpKind::abs, x), range.middle);
  const Operand infinite = l.binary(OpKind::mul, x, std::numeric_limits<double>::infinity());
  return l.cast(l.op(OpKind::where, {beyond, infinite, x}), to);
}

/// The low bits of an integer held in 8: ONNX discards the others.
Operand low_bits(Lowering& l, Operand x, int bits) {
  const DType held = l.dtype(x);
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  const Operand wide = l.cast(x, DType::i32), range = l.whole(DType::i32, 2 * half);
  if (held == DType::u8) return l.cast(l.binary(OpKind::mod, wide, range), held);
  const Operand shifted = l.binary(OpKind::mod, l.binary(OpKind::add, wide, l.whole(DType::i32, half)), range);
  return l.cast(l.binary(OpKind::sub, shifted, l.whole(DType::i32, half)), held);
}

void set_cast(Lowering& l, DType to, int bits) {
  const Operand x = l.in(0);
  if (bits && is_floating(to)) l.unsupported("conversion to float4e2m1 is not supported");
  Operand y = cast_to(l, x, to);
  if (bits && !(l.dtype(x) == to && l.bits(x) == bits)) {
    y = low_bits(l, y, bits);
    l.note_bits(y, bits);
  }
  l.set(0, y);
}

/// Before opset 6 a type is given by its name.
std::int64_t code_of_name(Lowering& l, std::string_view name) {
  constexpr std::string_view names[]{"UNDEFINED", "FLOAT",  "UINT8", "INT8",    "UINT16", "INT16",  "INT32",
                                     "INT64",     "STRING", "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
  const auto* found = std::ranges::find(names, name);
  l.expect(found != std::end(names), "attribute to: expected an element type, found '{}'", name);
  return found - std::begin(names);
}

}  // namespace

void lower_bit_shift(Lowering& l) {
  const std::string direction = l.text("direction", "");
  l.expect(direction == "LEFT" || direction == "RIGHT", "attribute direction: expected LEFT or RIGHT, found '{}'",
           direction);
  const Operand x = l.in(0);
  const DType own = l.dtype(x), natural = unsigned_of(own);
  const auto bits = [&](Operand v, DType to) {
    return l.dtype(v) == to ? v : l.op(OpKind::bitcast, {v}, {{"out_dtype", std::string(name_of(to))}});
  };
  const Operand shift = bits(l.in(1), natural);  // a negative one is more than the width
  if (direction == "LEFT") return l.set(0, bits(l.binary(OpKind::shift_left, bits(x, natural), shift), own));
  const auto shifted = [&](Operand v) { return bits(l.binary(OpKind::shift_right, bits(v, natural), shift), own); };
  if (own == natural) return l.set(0, shifted(x));
  const Operand below =
      l.unary(OpKind::bitwise_not, shifted(l.unary(OpKind::bitwise_not, x)));  // the sign is shifted in
  l.set(0, l.op(OpKind::where, {l.binary(OpKind::less, x, 0), below, shifted(x)}));
}

void lower_is_inf(Lowering& l) {
  l.set(0, l.op(OpKind::is_inf, {l.in(0)},
                {{"detect_negative", l.integer("detect_negative", 1) != 0 ? 1.0 : 0.0},
                 {"detect_positive", l.integer("detect_positive", 1) != 0 ? 1.0 : 0.0}}));
}

void lower_identity(Lowering& l) { l.set(0, l.in(0)); }

void lower_where(Lowering& l) { l.set(0, l.op(OpKind::where, {l.in(0), l.in(1), l.in(2)})); }

void lower_cast(Lowering& l) {
  l.expect(l.has_attribute("to"), "attribute to: expected an element type, found none");
  const std::int64_t code = l.version() < 6 ? code_of_name(l, l.text("to", "")) : l.integer("to", 0);
  set_cast(l, l.dtype_of_code(code), packed_bits(code));
}

void lower_cast_like(Lowering& l) { set_cast(l, l.dtype(l.in(1)), l.bits(l.in(1))); }

/// The exponent may have another type than the base, whose type the result has.
void lower_pow(Lowering& l) {
  const Operand a = l.in(0), b = second(l);
  const DType to = l.dtype(a);
  if (dtypes::real.contains(to) && l.is_known(b) && l.rank(b) == 0) {  // what exporters write for squares and cubes
    const double exponent = l.number_in(b);
    if (exponent == 2) return l.set(0, l.unary(OpKind::square, a));
    if (exponent == 3) return l.set(0, l.binary(OpKind::mul, l.unary(OpKind::square, a), a));
  }
  if (is_floating(to)) return l.set(0, l.binary(OpKind::pow, a, l.cast(b, to)));
  if (!is_floating(l.dtype(b))) return l.set(0, l.binary(OpKind::pow, a, l.cast(b, to)));
  l.set(0, l.cast(l.binary(OpKind::pow, l.cast(a, l.dtype(b)), b), to));
}

void lower_clip(Lowering& l) {
  const Operand x = l.in(0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (l.version() < 11)
    return l.set(0,
                 l.op(OpKind::clip, {x}, {{"low", l.number("min", -infinity)}, {"high", l.number("max", infinity)}}));
  const Operand low = l.in_or_none(1), high = l.in_or_none(2);
  const bool plain = dtypes::real.contains(l.dtype(x)) && (!low || l.is_known(low)) && (!high || l.is_known(high));
  if (plain && (low || high))
    return l.set(0, l.op(OpKind::clip, {x},
                         {{"low", low ? l.number_in(low) : -infinity}, {"high", high ? l.number_in(high) : infinity}}));
  Operand y = x;
  if (low) y = l.binary(OpKind::max, y, low);
  if (high) y = l.binary(OpKind::min, y, high);
  l.set(0, y);
}

}  // namespace cermet::onnx
