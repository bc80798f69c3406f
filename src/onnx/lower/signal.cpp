// Spectra and windows.
#include <cmath>
#include <numbers>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t largest_table = std::int64_t{1} << 25;  ///< elements

/// All of a spectrum of real numbers, whose element k is the conjugate of element n - k, from its first half.
Operand whole_spectrum(Lowering& l, Operand x, int axis, std::int64_t n) {
  const std::int64_t half = n / 2 + 1, given = l.size(x, axis);
  if (given > half) x = l.slice(x, axis, 0, half);
  if (given < half) {
    Ints pads(2 * static_cast<std::size_t>(l.rank(x)));
    pads[static_cast<std::size_t>(l.rank(x) + axis)] = half - given;
    x = l.op(OpKind::pad, {x}, {{"pads", pads}});
  }
  Ints mirrored;
  for (std::int64_t k = half; k < n; ++k) mirrored.push_back(n - k);
  if (mirrored.empty()) return x;
  const Operand rest = l.op(OpKind::gather, {x, l.ints(mirrored)}, {{"axis", std::int64_t{axis}}});
  return l.concat({x, l.size(x, -1) == 2 ? l.binary(OpKind::mul, rest, l.vector(l.dtype(x), {1, -1})) : rest}, axis);
}

/// x [.., n, .., 1 or 2]: real or complex numbers, transformed along an axis.
Operand transformed(Lowering& l, Operand x, int axis, std::int64_t length, bool inverse, bool one_sided) {
  l.expect(length > 0 && length <= largest_table, "dft_length: expected 1 to {}, found {}", largest_table, length);
  const bool from_half = inverse && one_sided;
  if (from_half) x = whole_spectrum(l, x, axis, length);
  const Attributes attributes{
      {"axis", std::int64_t{axis}}, {"length", length}, {"inverse", inverse}, {"onesided", one_sided && !inverse}};
  const Operand y = l.op(OpKind::dft, {x}, attributes);
  return from_half ? l.slice(y, l.rank(y) - 1, 0, 1) : y;
}

DType made_dtype(Lowering& l) { return l.dtype_of_code(l.integer("output_datatype", 1)); }

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n one less where the window is symmetric.
void set_cosine_window(Lowering& l, double a0, double a1, double a2) {
  const std::int64_t size = l.integer_in(l.in(0));
  const double n = static_cast<double>(size) - (l.integer("periodic", 1) != 0 ? 0 : 1);
  Floats window(l.listed(size));
  for (std::size_t i = 0; i < window.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n;
    window[i] = a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
  }
  l.set(0, size > 0 ? l.vector(made_dtype(l), window) : l.filled({0}, made_dtype(l), 0));
}

}  // namespace

void lower_dft(Lowering& l) {
  const Operand x = l.in(0);
  const int rank = l.rank(x);
  const std::int64_t given = l.version() < 20 ? l.integer("axis", 1) : l.has(2) ? l.integer_in(l.in(2)) : -2;
  const int axis = l.axis(given, rank);
  l.expect(axis < rank - 1, "axis: expected another than the last, which has real and imaginary parts, found {}",
           given);
  const bool inverse = l.integer("inverse", 0) != 0, one_sided = l.integer("onesided", 0) != 0;
  const std::int64_t length = l.has(1)               ? l.integer_in(l.in(1))
                              : inverse && one_sided ? 2 * (l.size(x, axis) - 1)
                                                     : l.size(x, axis);
  l.set(0, transformed(l, x, axis, length, inverse, one_sided));
}

void lower_stft(Lowering& l) {
  const Operand x = l.in(0);  // [B, L, 1 or 2]
  l.expect(l.rank(x) == 3, "expected [batch, length, 1 or 2], found {}", l.type(x).to_string());
  const std::int64_t step = l.integer_in(l.in(1));
  const std::int64_t frame = l.has(3) ? l.integer_in(l.in(3)) : l.has(2) ? l.size(l.in(2), 0) : l.size(x, 1);
  l.expect(step > 0 && frame > 0 && frame <= l.size(x, 1),
           "expected a positive step and frames of 1 to {} elements, found {} and {}", l.size(x, 1), step, frame);
  const std::int64_t frames = 1 + (l.size(x, 1) - frame) / step;
  l.expect(frames <= largest_table / frame, "expected at most {} elements in all frames, found {} frames of {}",
           largest_table, frames, frame);
  Ints at;
  at.reserve(l.listed(frames * frame));
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < frame; ++i) at.push_back(f * step + i);
  Operand y = l.op(OpKind::gather, {x, l.reshape(l.ints(at), {frames, frame})},
                   {{"axis", std::int64_t{1}}});  // [B, F, W, 1 or 2]
  if (l.has(2)) {
    l.expect(l.size(l.in(2), 0) == frame, "window: expected {} elements, found {}", frame, l.type(l.in(2)).to_string());
    y = l.binary(OpKind::mul, y, l.unsqueeze(l.in(2), {1}));
  }
  l.set(0, transformed(l, y, 2, frame, false, l.integer("onesided", 1) != 0));
}

void lower_det(Lowering& l) { l.set(0, l.op(OpKind::det, {l.in(0)})); }

void lower_hann_window(Lowering& l) { set_cosine_window(l, 0.5, 0.5, 0); }
void lower_hamming_window(Lowering& l) { set_cosine_window(l, 25.0 / 46, 21.0 / 46, 0); }
void lower_blackman_window(Lowering& l) { set_cosine_window(l, 0.42, 0.5, 0.08); }

/// Triangles over the bins of a spectrum, their corners evenly spaced in mel.
void lower_mel_weight_matrix(Lowering& l) {
  const std::int64_t bins = l.integer_in(l.in(0)), length = l.integer_in(l.in(1));
  const double rate = l.number_in(l.in(2)), lowest = l.number_in(l.in(3)), highest = l.number_in(l.in(4));
  const std::int64_t rows = length / 2 + 1;
  l.expect(bins >= 0 && bins <= largest_table && length >= 0 && rows <= largest_table && rate > 0 &&
               bins * rows <= largest_table,
           "expected sizes of a matrix and a positive rate, found {}, {} and {}", bins, length, rate);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(highest) - mel(lowest)) / static_cast<double>(bins + 2);
  Ints corner;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(lowest)) / 2595) - 1);
    const double at = std::floor(static_cast<double>(length + 1) * hertz / rate);
    l.expect(at >= 0 && at < static_cast<double>(rows), "frequencies: expected bins below {}, found {}", rows, at);
    corner.push_back(static_cast<std::int64_t>(at));
  }
  Floats matrix(l.listed(rows * bins));
  for (std::int64_t b = 0; b < bins; ++b) {
    const auto i = static_cast<std::size_t>(b);
    const std::int64_t left = corner[i], middle = corner[i + 1], right = corner[i + 2];
    const auto at = [&](std::int64_t row) -> double& { return matrix[static_cast<std::size_t>(row * bins + b)]; };
    if (middle == left) at(middle) = 1;
    else
      for (std::int64_t j = left; j <= middle; ++j)
        at(j) = static_cast<double>(j - left) / static_cast<double>(middle - left);
    for (std::int64_t j = middle; j < right; ++j)
      at(j) = static_cast<double>(right - j) / static_cast<double>(right - middle);
  }
  l.set(0,
        bins == 0 ? l.filled({rows, 0}, made_dtype(l), 0) : l.reshape(l.vector(made_dtype(l), matrix), {rows, bins}));
}

}  // namespace cermet::onnx
