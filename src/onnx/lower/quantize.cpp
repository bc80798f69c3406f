// Quantization: exact integer products from float32 products that are short enough to be exact.
#include <algorithm>

#include "onnx/lower/fused.hpp"
#include "onnx/lower/quantized_product.hpp"
#include "onnx/packed_integers.hpp"

namespace cermet::onnx {
namespace {

/// Sums of this many products of differences of 8-bit integers are exact in float32: 255 * 255 * 256 < 2^24.
constexpr std::int64_t exact_terms = 256;

/// A scale or a zero point so that it broadcasts to x: one number, one for each position along the axis, or one for
/// each block of positions.
Operand spread_parameter(Lowering& l, Operand parameter, Operand x) {
  const Dims dims = l.dims(parameter);
  if (product(dims) == Dim(1)) return l.reshape(parameter, {});
  const int axis = l.axis(l.integer("axis", 1), l.rank(x));
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t block = l.integer("block_size", 0);
  if (block == 0) {
    l.expect(dims.size() == 1 && dims[0] == l.dim(x, axis), "scale: expected [], [1] or [{}], found {}",
             l.dim(x, axis).to_string(), to_string(dims));
    Dims to(static_cast<std::size_t>(l.rank(x)), 1);
    to[at] = dims[0];
    return l.reshape(parameter, to);
  }
  l.expect(block > 0 && dims.size() == l.dims(x).size() && dims[at] == ceil_div(l.dim(x, axis), block),
           "scale: expected the dimensions of {} with axis {} divided by {}, found {}", l.type(x).to_string(), axis,
           block, to_string(dims));
  Dims repeated = dims;
  repeated.insert(repeated.begin() + axis + 1, block);
  Dims to = dims;
  to[at] = dims[at] * block;
  const Operand blocks = l.reshape(l.expand(l.unsqueeze(parameter, {axis + 1}), repeated), to);
  return to[at] == l.dim(x, axis) ? blocks : l.slice(blocks, axis, 0, l.size(x, axis));
}

/// round(x + zero point) in a type, with saturation; x is float32.
Operand quantized(Lowering& l, Operand x, Operand zero_point, DType to) {
  if (is_floating(to)) return l.cast(x, to);
  x = l.unary(OpKind::round, x);
  return l.cast(zero_point ? l.binary(OpKind::add, x, l.cast(zero_point, DType::f32)) : x, to);
}

/// Integers of fewer bits than they are held in.
void set_packed(Lowering& l, Operand x, Operand zero_point, DType to, int bits) {
  if (is_floating(to)) l.unsupported("float4e2m1 is not supported");
  const std::int64_t range = std::int64_t{1} << bits, least = to == DType::u8 ? 0 : -range / 2;
  x = quantized(l, x, zero_point, DType::i32);
  x = l.binary(OpKind::min, l.binary(OpKind::max, x, l.whole(DType::i32, least)),
               l.whole(DType::i32, least + range - 1));
  const Operand y = l.cast(x, to);
  l.note_bits(y, bits);
  l.set(0, y);
}

/// x - zero point in float32, which holds it exactly for 8 bits.
Operand centered(Lowering& l, Operand x, Operand zero_point) {
  x = l.cast(x, DType::f32);
  return zero_point ? l.binary(OpKind::sub, x, l.cast(zero_point, DType::f32)) : x;
}

Operand whole(Lowering& l, Operand x) {
  return l.op(OpKind::cast, {x}, {{"out_dtype", "i32"}, {"rounding", "nearest"}});
}

/// The exact product of integers in i32; zero points broadcast to their operands.
Operand integer_product(Lowering& l, Operand a, Operand b) {
  const std::int64_t k = l.size(a, -1);
  const int rows = l.rank(b) - 2;
  Operand sum;
  for (std::int64_t first = 0; first == 0 || first < k; first += exact_terms) {
    const std::int64_t last = std::min(k, first + exact_terms);
    const bool all = first == 0 && last == k;
    const Operand part = l.op(
        OpKind::matmul, {all ? a : l.slice(a, l.rank(a) - 1, first, last), all ? b : l.slice(b, rows, first, last)});
    sum = sum ? l.binary(OpKind::add, sum, whole(l, part)) : whole(l, part);
  }
  return sum;
}

/// Rows times a matrix of 8-bit integers, in i32: a [.., K] with one zero point, b [K, N] with one or one a column.
/// Exact modulo 2^32.
Operand row_product(Lowering& l, Operand a, Operand a_zero, Operand b, Operand b_zero) {
  const auto [left, left_zero] = as_signed(l, a, a_zero);
  const auto [right, right_zero] = as_signed(l, b, b_zero);
  const Operand zero = l.reshape(left_zero, {});
  Operand y = l.op(OpKind::scaled_mm, {left, l.transpose(right, {1, 0}), {}, {}, {}, zero}, {{"out_dtype", "i32"}});
  if (!is_zero(l, right_zero)) {
    const Operand sums =
        l.reduce(OpKind::reduce_sum, l.binary(OpKind::sub, l.cast(left, DType::i32), zero), {l.rank(a) - 1}, true);
    y = l.binary(OpKind::sub, y, l.binary(OpKind::mul, sums, right_zero));
  }
  return y;
}

}  // namespace

Operand integer_matmul(Lowering& l, Operand a, Operand a_zero, Operand b, Operand b_zero) {
  const bool row = l.rank(a) == 1, column = l.rank(b) == 1;
  const bool one_zero = !a_zero || product(l.dims(a_zero)) == Dim(1);
  constexpr std::int64_t longest = 131071;  // of scaled_mm
  if (l.rank(a) >= 2 && l.rank(b) == 2 && one_zero && (!b_zero || l.rank(b_zero) < 2) && l.size(b, 0) > 0 &&
      l.size(b, 0) <= longest)
    return row_product(l, a, a_zero, b, b_zero);
  if (a_zero && l.rank(a_zero) == 1 && l.dim(a_zero, 0) != Dim(1)) a_zero = l.unsqueeze(a_zero, {1});
  a = centered(l, a, a_zero);
  b = centered(l, b, b_zero);
  Operand y = integer_product(l, row ? l.unsqueeze(a, {0}) : a, column ? l.unsqueeze(b, {1}) : b);
  if (column) y = l.squeeze(y, {-1});
  return row ? l.squeeze(y, {column ? -1 : -2}) : y;
}

namespace {

Ints conv_pads(Lowering& l, Operand x, Operand w, const Ints& strides, const Ints& dilations) {
  const auto axes = static_cast<std::size_t>(l.rank(x) - 2);
  Ints pads = l.integers("pads", Ints(2 * axes));
  l.expect(pads.size() == 2 * axes, "attribute pads: expected {}, found {}", 2 * axes, pads.size());
  const std::string automatic = l.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic == "VALID") return automatic == "VALID" ? Ints(2 * axes) : pads;
  for (std::size_t i = 0; i < axes; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t size = l.size(x, axis), places = (size + strides[i] - 1) / strides[i];
    const std::int64_t all =
        std::max<std::int64_t>(0, (places - 1) * strides[i] + (l.size(w, axis) - 1) * dilations[i] + 1 - size);
    const std::int64_t less = all / 2, more = all - less;
    pads[i] = automatic == "SAME_UPPER" ? less : more;
    pads[axes + i] = automatic == "SAME_UPPER" ? more : less;
  }
  return pads;
}

/// The exact convolution of integers in i32.
Operand integer_conv(Lowering& l, Operand x, Operand x_zero, Operand w, Operand w_zero) {
  l.expect(l.rank(x) >= 3 && l.rank(w) == l.rank(x),
           "expected operands of equal dimensions, at least 3, found {} and {}", l.type(x).to_string(),
           l.type(w).to_string());
  const auto axes = static_cast<std::size_t>(l.rank(x) - 2);
  const Ints strides = l.integers("strides", Ints(axes, 1)), dilations = l.integers("dilations", Ints(axes, 1));
  const std::int64_t group = l.integer("group", 1), channels = l.size(w, 1);
  l.expect(strides.size() == axes && dilations.size() == axes, "expected {} strides and dilations, found {} and {}",
           axes, strides.size(), dilations.size());
  for (const Ints* list : {&strides, &dilations})
    for (const std::int64_t v : *list)
      l.expect(v >= 1 && v <= (1 << 20), "strides and dilations: expected 1 to {}, found {}", 1 << 20, v);
  if (w_zero && l.rank(w_zero) == 1) {
    Dims per_channel(l.dims(w).size(), 1);
    per_channel[0] = l.dim(w_zero, 0);
    w_zero = l.reshape(w_zero, per_channel);
  }
  const Attributes attributes{{"strides", strides},
                              {"dilations", dilations},
                              {"pads", conv_pads(l, x, w, strides, dilations)},
                              {"group", group}};
  x = centered(l, x, x_zero);
  w = centered(l, w, w_zero);
  const std::int64_t taps = l.constant(product({l.dims(w).begin() + 2, l.dims(w).end()}));
  if (taps > exact_terms) l.unsupported("integer kernels of more than {} elements are not supported", exact_terms);
  const std::int64_t most = exact_terms / std::max<std::int64_t>(1, taps);
  if (channels <= most) return whole(l, l.op(OpKind::conv, {x, w}, attributes));
  Dims grouped = l.dims(x), flat = grouped;
  grouped[1] = channels;
  grouped.insert(grouped.begin() + 1, group);
  const Operand by_group = l.reshape(x, grouped);
  Operand sum;
  for (std::int64_t first = 0; first < channels; first += most) {
    const std::int64_t last = std::min(channels, first + most);
    flat[1] = group * (last - first);
    const Operand part =
        whole(l, l.op(OpKind::conv, {l.reshape(l.slice(by_group, 2, first, last), flat), l.slice(w, 1, first, last)},
                      attributes));
    sum = sum ? l.binary(OpKind::add, sum, part) : part;
  }
  return sum;
}

}  // namespace

void lower_quantize_linear(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t code = l.integer("output_dtype", 0);
  const DType to = l.has(2) ? l.dtype(l.in(2)) : code ? l.dtype_of_code(code) : DType::u8;
  const bool has_zero = l.has(2) && !is_floating(to);  // that of fp8 is 0
  const Operand scale = l.cast(spread_parameter(l, l.in(1), x), DType::f32),
                zero_point = has_zero ? spread_parameter(l, l.in(2), x) : Operand{};
  const bool saturate = l.integer("saturate", 1) != 0 || !is_floating(to);
  const int bits = l.has(2) ? l.bits(l.in(2)) : packed_bits(code);
  if (bits) return set_packed(l, l.binary(OpKind::div, l.cast(x, DType::f32), scale), zero_point, to, bits);
  if (l.rank(x) > 0 && dtypes::real.contains(l.dtype(x)) && size_of(to) <= 2) {
    const Operand q = l.op(OpKind::quantize, {x, scale, {}, zero_point},
                           {{"out_dtype", std::string(name_of(to))}, {"saturate", saturate}});
    if (!is_floating(to)) l.note_quantized_from(q, {x, l.in(1), l.in_or_none(2), l.integer("axis", 1)});
    return l.set(0, q);
  }
  if (!saturate) l.unsupported("attribute saturate: 0 is not supported for operands of type {}", name_of(l.dtype(x)));
  l.set(0, quantized(l, l.binary(OpKind::div, l.cast(x, DType::f32), scale), zero_point, to));
}

void lower_dequantize_linear(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t code = l.integer("output_dtype", 0);
  const DType to = code ? l.dtype_of_code(code) : l.dtype(l.in(1));
  const bool has_zero = l.has(2) && !is_floating(l.dtype(x));
  const Operand scale = l.cast(spread_parameter(l, l.in(1), x), DType::f32);
  Operand zero_point = has_zero ? spread_parameter(l, l.in(2), x) : Operand{};
  if (l.rank(x) > 0 && dtypes::real.contains(to)) {
    Operand bytes = x;
    const std::optional<QuantizedFrom> from = l.dtype(x) == DType::u8 ? l.quantized_from(x) : std::nullopt;
    if (from && from->scale == l.in(1) && from->zero_point == l.in_or_none(2) &&
        product(l.dims(from->scale)) == Dim(1)) {
      const auto [values, zero] =
          as_signed(l, x, from->zero_point);  // products and what is fused with them have i8 only
      bytes = values;
      zero_point = l.reshape(zero, {});
    }
    const Operand y = l.op(OpKind::dequantize, {bytes, scale, zero_point},
                           {{"granularity", "broadcast"}, {"out_dtype", std::string(name_of(to))}});
    if (!is_floating(l.dtype(x)) && l.integer("block_size", 0) == 0)
      l.note_quantized_from(y, {x, l.in(1), l.in_or_none(2), l.integer("axis", 1)});
    return l.set(0, y);
  }
  l.set(0, l.cast(l.binary(OpKind::mul, centered(l, x, zero_point), scale), to));
}

QuantizedFrom dynamically_quantized(Lowering& l, Operand x) {
  Ints axes(static_cast<std::size_t>(l.rank(x)));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  const Operand high = l.binary(OpKind::max, l.reduce(OpKind::reduce_max, x, axes, false), 0.0);
  const Operand low = l.binary(OpKind::min, l.reduce(OpKind::reduce_min, x, axes, false), 0.0);
  const Operand range = l.op(
      OpKind::where, {l.binary(OpKind::equal, high, low), l.scalar(DType::f32, 255), l.binary(OpKind::sub, high, low)});
  const Operand scale = l.binary(OpKind::div, range, 255.0);  // 1 where all is 0
  const Operand zero_point = l.op(OpKind::cast, {l.unary(OpKind::neg, l.binary(OpKind::div, low, scale))},
                                  {{"out_dtype", "u8"}, {"rounding", "nearest"}});
  return {quantized(l, l.binary(OpKind::div, x, scale), zero_point, DType::u8), scale, zero_point};
}

void lower_dynamic_quantize_linear(Lowering& l) {
  const QuantizedFrom q = dynamically_quantized(l, l.in(0));
  l.set(0, q.x);
  l.set(1, q.scale);
  l.set(2, q.zero_point);
}

void lower_matmul_integer(Lowering& l) {
  l.set(0, integer_matmul(l, l.in(0), l.in_or_none(2), l.in(1), l.in_or_none(3)));
}

void lower_qlinear_matmul(Lowering& l) {
  const Operand a = l.in(0), b = l.in(3);
  for (const Operand x : {a, b})
    if (size_of(l.dtype(x)) != 1 || is_floating(l.dtype(x)))
      l.unsupported("operands of type {} are not supported", name_of(l.dtype(x)));
  const auto scale = [&](std::size_t i) { return l.cast(l.in(i), DType::f32); };
  Operand a_scale = scale(1);
  if (l.rank(a_scale) == 1 && l.dim(a_scale, 0) != Dim(1)) a_scale = l.unsqueeze(a_scale, {1});
  const Operand sum = l.cast(integer_matmul(l, a, l.in(2), b, l.in(5)), DType::f32);
  const Operand factor = l.binary(OpKind::div, l.binary(OpKind::mul, a_scale, scale(4)), scale(6));
  l.set(0, quantized(l, l.binary(OpKind::mul, sum, l.rank(sum) == 0 ? l.reshape(factor, {}) : factor), l.in(7),
                     l.dtype(l.in(7))));
}

void lower_conv_integer(Lowering& l) { l.set(0, integer_conv(l, l.in(0), l.in_or_none(2), l.in(1), l.in_or_none(3))); }

void lower_qlinear_conv(Lowering& l) {
  const bool last = l.integer("channels_last", 0) != 0;  // com.microsoft's
  const Operand x = last ? channels_second(l, l.in(0)) : l.in(0), w = l.in(3);
  Operand sum = integer_conv(l, x, l.in(2), w, l.in(5));
  Dims per_channel(l.dims(w).size() - 1, 1);
  per_channel[0] = l.dim(w, 0);
  if (l.has(8)) sum = l.binary(OpKind::add, sum, l.reshape(l.in(8), per_channel));
  Operand w_scale = l.in(4);
  w_scale = l.reshape(w_scale, l.rank(w_scale) == 1 && l.dim(w_scale, 0) != Dim(1) ? per_channel : Dims{});
  const Operand factor =
      l.binary(OpKind::div, l.binary(OpKind::mul, l.reshape(l.in(1), {}), w_scale), l.reshape(l.in(6), {}));
  const Operand y =
      quantized(l, l.binary(OpKind::mul, l.cast(sum, DType::f32), factor), l.reshape(l.in(7), {}), l.dtype(l.in(7)));
  l.set(0, last ? channels_last(l, y) : y);
}

}  // namespace cermet::onnx
