#include "onnx/lower/quantized_product.hpp"

#include <algorithm>

namespace cermet::onnx {
namespace {

constexpr std::int64_t longest = 131071;  ///< reduction of scaled_mm whose sums are exact
constexpr std::int64_t fewest_channels =
    16;  ///< of a convolution whose windows are copied: for less, the copies cost more than the products save

/// A product's operand as scaled_mm has it.
struct SignedOperand {
  Operand values, zero, scale;  ///< i8; i32, none for 0; f32
};

bool is_bytes(DType t) { return t == DType::i8 || t == DType::u8; }

/// A float32 value with one scale and zero point.
std::optional<SignedOperand> rows_of(Lowering& l, Operand y) {
  const std::optional<QuantizedFrom> from = l.quantized_from(y);
  if (!from || l.dtype(y) != DType::f32 || !is_bytes(l.dtype(from->x)) || product(l.dims(from->scale)) != Dim(1))
    return {};
  const auto [values, zero] = as_signed(l, from->x, from->zero_point);
  return SignedOperand{values, is_zero(l, zero) ? Operand{} : l.reshape(zero, {}),
                       l.reshape(l.cast(from->scale, DType::f32), {})};
}

/// A constant without zero points that has one scale, or one for each position along the axis of outputs.
std::optional<SignedOperand> weight_of(Lowering& l, Operand y, int outputs) {
  const std::optional<QuantizedFrom> from = l.quantized_from(y);
  if (!from || l.dtype(y) != DType::f32 || !is_bytes(l.dtype(from->x)) || !l.is_known(from->x)) return {};
  const Dims dims = l.dims(from->scale);
  const bool one = product(dims) == Dim(1);
  if (!one && (dims.size() != 1 || l.axis(from->axis, l.rank(y)) != outputs)) return {};
  const auto [values, zero] = as_signed(l, from->x, from->zero_point);
  if (!is_zero(l, zero)) return {};
  return SignedOperand{values, {}, l.reshape(l.cast(from->scale, DType::f32), one ? Dims{} : dims)};
}

}  // namespace

bool is_zero(Lowering& l, Operand x) {
  return l.is_known(x) && std::ranges::all_of(l.ints_in(x), [](std::int64_t value) { return value == 0; });
}

std::pair<Operand, Operand> as_signed(Lowering& l, Operand x, Operand zero) {
  const Operand raw = zero;
  zero = zero ? l.cast(zero, DType::i32) : l.scalar(DType::i32, 0);
  if (l.dtype(x) == DType::i8) return {x, zero};
  zero = l.binary(OpKind::sub, zero, 128.0);
  std::optional<QuantizedFrom> from = l.quantized_from(x);
  const bool again = from && product(l.dims(from->scale)) == Dim(1) && from->zero_point == raw && l.is_known(zero);
  if (!again) return {l.cast(l.binary(OpKind::sub, l.cast(x, DType::i32), 128.0), DType::i8), zero};
  if (!from->as_signed) {  // the same numbers, quantized to i8 at once
    const Operand scale = l.reshape(l.cast(from->scale, DType::f32), {});
    from->as_signed =
        l.op(OpKind::quantize, {from->x, scale, {}, l.cast(l.reshape(zero, {}), DType::i8)}, {{"out_dtype", "i8"}});
    l.note_quantized_from(x, *from);
  }
  return {from->as_signed, zero};
}

std::optional<Operand> quantized_linear(Lowering& l, Operand rows, Operand weight, bool transposed, Operand bias) {
  if (l.rank(rows) < 2 || l.rank(weight) != 2) return {};
  const Dim reduced = l.dim(rows, -1);
  if (!reduced.is_constant() || reduced.constant() < 1 || reduced.constant() > longest) return {};
  const std::optional<SignedOperand> w = weight_of(l, weight, transposed ? 0 : 1);
  const std::optional<SignedOperand> x = w ? rows_of(l, rows) : std::nullopt;
  if (!x) return {};
  const Operand columns = transposed ? w->values : l.transpose(w->values, {1, 0});
  return l.op(OpKind::scaled_mm, {x->values, columns, x->scale, w->scale, bias, x->zero});
}

std::optional<Operand> quantized_conv(Lowering& l, Operand x, Operand weight, Operand bias, const PlaneWindow& window) {
  if (l.rank(x) != 4 || l.rank(weight) != 4 || window.group != 1) return {};
  for (int axis = 1; axis < 4; ++axis)
    if (!l.dim(x, axis).is_constant() || !l.dim(weight, axis).is_constant()) return {};
  const std::int64_t channels = l.size(weight, 1), taps[] = {l.size(weight, 2), l.size(weight, 3)};
  if (channels < fewest_channels || l.size(x, 1) != channels || taps[0] * taps[1] * channels > longest) return {};
  const std::optional<SignedOperand> w = weight_of(l, weight, 0);
  const std::optional<SignedOperand> q = w ? rows_of(l, x) : std::nullopt;
  if (!q || (q->zero && !l.is_known(q->zero))) return {};

  std::int64_t places[2];
  for (std::size_t a = 0; a < 2; ++a) {
    const std::int64_t room = l.size(x, static_cast<int>(a) + 2) + window.pads[a] + window.pads[a + 2] -
                              window.dilations[a] * (taps[a] - 1) - 1;
    if (room < 0) return {};
    places[a] = room / window.strides[a] + 1;
  }
  Operand image = l.transpose(q->values, {0, 2, 3, 1});  // [B, H, W, C]
  if (std::ranges::any_of(window.pads, [](std::int64_t pad) { return pad != 0; })) {
    const Ints pads{0, window.pads[0], window.pads[1], 0, 0, window.pads[2], window.pads[3], 0};
    image = l.op(OpKind::pad, {image},
                 {{"pads", pads}, {"value", q->zero ? static_cast<double>(l.integer_in(q->zero)) : 0.0}});
  }
  std::vector<Operand> under;  // one for each tap, [B, OH, OW, C]
  for (std::int64_t i = 0; i < taps[0]; ++i) {
    for (std::int64_t j = 0; j < taps[1]; ++j) {
      const Ints starts{i * window.dilations[0], j * window.dilations[1]};
      const Ints ends{starts[0] + (places[0] - 1) * window.strides[0] + 1,
                      starts[1] + (places[1] - 1) * window.strides[1] + 1};
      const bool all = taps[0] * taps[1] == 1 && window.strides[0] == 1 && window.strides[1] == 1;
      under.push_back(
          all ? image
              : l.op(OpKind::slice, {image},
                     {{"starts", starts}, {"ends", ends}, {"axes", Ints{1, 2}}, {"steps", window.strides}}));
    }
  }
  const std::int64_t length = taps[0] * taps[1] * channels;
  const Operand columns = l.reshape(l.transpose(w->values, {0, 2, 3, 1}), {l.dim(weight, 0), length});
  return l.transpose(l.op(OpKind::scaled_mm, {l.concat(under, 3), columns, q->scale, w->scale, bias, q->zero}),
                     {0, 3, 1, 2});
}

}  // namespace cermet::onnx
