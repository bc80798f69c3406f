// Tiles of 16-bit elements in shared memory as ldmatrix reads them, and elements as the tensor cores take them.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::attention {

/// Where rows of `Size` 16-bit elements lie in a tile of `Count` rows.
template <int Size, int Count>
struct TileRows {
  static constexpr int piece = tile_piece(Size), bytes = tile_bytes(Size, Count),
                       row_bytes = piece != 0 ? 2 * piece : bytes / Count, pieces = piece != 0 ? Size / piece : 1,
                       piece_chunks = piece != 0 ? piece / 8 : Size / 8;
  /// How the 16-byte chunks of a row are swizzled (XORed into the offset within the piece). The same for row + 8.
  static CERMET_DEVICE int swizzle(int row) { return piece == 64 ? row % 8 * 16 : piece == 32 ? row / 2 % 4 * 16 : 0; }
  static CERMET_DEVICE int piece_offset(int chunk) { return piece != 0 ? chunk / piece_chunks * Count * row_bytes : 0; }
  static CERMET_DEVICE int in_piece(int chunk) { return piece != 0 ? chunk % piece_chunks * 16 : chunk * 16; }
  static CERMET_DEVICE int offset(int row, int chunk) {
    return piece_offset(chunk) + row * row_bytes + (in_piece(chunk) ^ swizzle(row));
  }
};

/// The same where rows follow each other as in memory, and all 128-byte lines of the tile are swizzled: what a bulk
/// tensor copy of whole rows leaves. Rows have 128, 256 or 512 bytes.
template <int Size, int Count>
struct LineRows {
  static constexpr int row_bytes = 2 * Size, bytes = Count * row_bytes, lines = row_bytes / 128;  ///< of a row
  static_assert(row_bytes % 128 == 0 && 8 % lines == 0);
  static CERMET_DEVICE int swizzle(int row) { return row * lines % 8 * 16; }
  static CERMET_DEVICE int piece_offset(int chunk) { return chunk / 8 * 128; }
  static CERMET_DEVICE int in_piece(int chunk) { return (chunk % 8 ^ chunk / 8) * 16; }
  static CERMET_DEVICE int offset(int row, int chunk) {
    return piece_offset(chunk) + row * row_bytes + (in_piece(chunk) ^ swizzle(row));
  }
};

inline constexpr float log2_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;

CERMET_DEVICE float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Two 16-bit elements in a register, the first in its lower half.
CERMET_DEVICE uint32_t pack(float first, float second, bf16) {
  uint32_t both;
#if CERMET_ARCH >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
#else
  both = from_float<bf16>(first).bits | static_cast<uint32_t>(from_float<bf16>(second).bits) << 16;
#endif
  return both;
}
CERMET_DEVICE uint32_t pack(float first, float second, f16) {
  uint32_t both;
#if CERMET_ARCH >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
#else
  both = from_float<f16>(first).bits | static_cast<uint32_t>(from_float<f16>(second).bits) << 16;
#endif
  return both;
}
CERMET_DEVICE float first_of(uint32_t both, bf16) { return __uint_as_float(both << 16); }
CERMET_DEVICE float second_of(uint32_t both, bf16) { return __uint_as_float(both & 0xffff0000u); }
CERMET_DEVICE float first_of(uint32_t both, f16) { return to_float(f16{static_cast<uint16_t>(both)}); }
CERMET_DEVICE float second_of(uint32_t both, f16) { return to_float(f16{static_cast<uint16_t>(both >> 16)}); }

#if CERMET_ARCH >= 890
/// Four elements, the first in the lowest byte; finite ones saturate.
CERMET_DEVICE uint32_t pack(float a, float b, float c, float d, f8_e4m3) {
  uint32_t all;
  asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\ncvt.rn.satfinite.e4m3x2.f32 high, %4, "
      "%3;\nmov.b32 %0, {low, high};\n}"
      : "=r"(all)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return all;
}
#endif
template <class T>
CERMET_DEVICE float rounded(float x, T) {
  return first_of(pack(x, x, T{}), T{});
}

/// What rounding to 16 bits left of two elements; NaN where one is not finite.
template <class T>
CERMET_DEVICE uint32_t pack_rest(float first, float second, uint32_t rounded) {
  return pack(first - first_of(rounded, T{}), second - second_of(rounded, T{}), T{});
}

/// The same for queries that are rounded to T: an infinity, or what became one, leaves nothing, so that it stays one;
/// so does NaN.
template <class T>
CERMET_DEVICE uint32_t query_rest(float first, float second, uint32_t rounded) {
  const float a = first - first_of(rounded, T{}), b = second - second_of(rounded, T{});
  return pack(a == a ? a : 0.0f, b == b ? b : 0.0f, T{});
}

}  // namespace cermet::attention
