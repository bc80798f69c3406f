// bf16 weights in 12 bits an element, for products of one row, whose time is that of reading them.
#pragma once

#include <cstdint>

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// Layout of a matrix [N, K] of bf16, K a multiple of 256: N rows of 3 K / 2 bytes, then N float32 factors.
/// A row has a common shift, so that its largest element has a four-bit exponent; an element keeps its sign, its
/// exponent less the shift, and its seven bits of mantissa. Those below 2^-14 of the power of two of the largest are
/// subnormal: rounded to nearest, to multiples of 2^-21 of it, and zeros are kept. All others are exact, so that a
/// product of such rows has the bits of one of the plain rows where no element is that small. Of 256 elements come
/// first 256 bytes, each the lowest bit of the exponent and the mantissa, then 32 words of four bits for each of eight
/// elements (device/gemv/row.cuh). A factor is 2^(shift
/// - 64): what sums are multiplied with after their operands were multiplied by 2^64. Rows that hold an infinity, a NaN
/// or an element of 2^80 or more have a factor of NaN.
extern const WeightLayout compact_rows;

/// Bytes of a row of K elements.
constexpr std::int64_t compact_row_bytes(std::int64_t k) { return k / 2 * 3; }

}  // namespace cermet::cuda
