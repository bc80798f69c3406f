#include "kernel/cuda/gemv/compact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/device/gemv/gemv.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t piece = gemv::compact_piece_elements;
constexpr int mantissa_bits = 7, most_exponent = 15, most_shift = 191, lanes = 32, lane_elements = 8;

/// Sign (bit 15), exponent less the shift and mantissa (11 bits); what the shift takes from a small element is rounded
/// to nearest, ties to even. Without a branch, so that a compiler can do it for many.
std::uint32_t shifted(std::uint32_t bits, std::int32_t shift) {
  const auto exponent = static_cast<std::int32_t>(bits >> mantissa_bits & 0xff);
  const std::uint32_t significand = (bits & 0x7f) | (exponent == 0 ? 0u : 0x80u);
  const auto drop = static_cast<std::uint32_t>(std::clamp(shift + 1 - std::max(exponent, 1), 0, mantissa_bits + 2));
  const std::uint32_t half = (1u << drop) >> 1, is_odd = significand >> drop & 1u;
  const std::uint32_t small = (significand + (drop == 0 ? 0 : half - 1 + is_odd)) >> drop;
  const std::uint32_t exact = static_cast<std::uint32_t>(exponent - shift) << mantissa_bits | (bits & 0x7f);
  return (bits & 0x8000u) | (exponent > shift ? exact : small);
}

/// A piece, whose elements are shifted.
void place(const std::uint16_t (&elements)[piece], std::byte* to) {
  for (std::int64_t i = 0; i < piece; ++i) to[i] = static_cast<std::byte>(elements[i] & 0xff);
  for (int lane = 0; lane < lanes; ++lane) {
    const std::uint16_t* const own = elements + lane * lane_elements;
    std::uint32_t first = 0, last = 0;
    for (int i = 0; i < 4; ++i) {
      first |= static_cast<std::uint32_t>(own[i] >> 8) << 8 * i;
      last |= static_cast<std::uint32_t>(own[i + 4] >> 8) << 8 * i;
    }
    const std::uint32_t upper = first | std::rotr(last, 4);
    std::memcpy(to + piece + 4 * lane, &upper, sizeof upper);
  }
}

float pack_row(const std::uint16_t* row, std::int64_t k, std::byte* to) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < k; ++i) largest = std::max<std::int32_t>(largest, row[i] >> mantissa_bits & 0xff);
  const std::int32_t shift = std::max(0, largest - most_exponent);
  std::uint16_t elements[piece];
  for (std::int64_t first = 0; first < k; first += piece, to += gemv::compact_piece_bytes) {
    for (std::int64_t i = 0; i < piece; ++i) elements[i] = static_cast<std::uint16_t>(shifted(row[first + i], shift));
    place(elements, to);
  }
  return shift > most_shift ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, shift - 64);
}

std::int64_t bytes(const TensorType& matrix) {
  const Shape shape = bind(matrix.dims, {});
  return shape[0] * (compact_row_bytes(shape[1]) + static_cast<std::int64_t>(sizeof(float)));
}

void pack(const TensorView& matrix, std::byte* destination, ThreadPool& pool) {
  const std::int64_t rows = matrix.shape[0], k = matrix.shape[1];
  float* const factors = reinterpret_cast<float*>(destination + rows * compact_row_bytes(k));
  pool.parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      factors[n] =
          pack_row(matrix.as<const std::uint16_t>() + n * matrix.strides[0], k, destination + n * compact_row_bytes(k));
  });
}

}  // namespace

constexpr WeightLayout compact_rows{"gemv.compact_rows", bytes, pack};

}  // namespace cermet::cuda
