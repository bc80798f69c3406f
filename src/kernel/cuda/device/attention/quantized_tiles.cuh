// Tiles of quantized keys and values as operands of tensor cores that multiply float16: elements are widened in
// registers, exactly. A key's scale is applied to its scores, a value's to its weights.
#pragma once

#include "kernel/cuda/device/attention/tile_rows.cuh"
#include "kernel/cuda/device/f16_pairs.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::attention {

/// Bytes of an element of a cache; those of one byte are quantized.
template <DType T>
inline constexpr int cached_bytes = static_cast<int>(sizeof(Element<T>));

/// The type that an element of a cache is widened to for the tensor cores.
template <DType T, int Bytes = cached_bytes<T>>
struct MultipliedOf {
  using type = Element<T>;
};
template <DType T>
struct MultipliedOf<T, 1> {
  using type = f16;
};
template <DType T>
using Multiplied = typename MultipliedOf<T>::type;

/// Where rows of `Size` cached elements lie in a tile of `Count` rows.
template <DType T, int Size, int Count>
using CachedRows = TileRows<Size * cached_bytes<T> / 2, Count>;
/// The same of a tile that a bulk tensor copy brought.
template <DType T, int Size, int Count>
using CachedLines = LineRows<Size * cached_bytes<T> / 2, Count>;

/// The order in which the elements of a quantized row are multiplied: a lane reads `bytes` neighbours of a key at once,
/// and multiplies four of them in each step of 16. Queries have the same order.
template <int Size>
struct WideningOrder {
  static constexpr int bytes = Size % 64 == 0 ? 16 : Size % 32 == 0 ? 8 : 4, words = bytes / 4;
  /// The first of the four elements that a lane multiplies in a step; `quarter` is lane % 4.
  static CERMET_DEVICE int element(int step, int quarter) {
    return (step / words * 4 + quarter) * bytes + step % words * 4;
  }
  /// Step and place in the step of an element whose number is even: what element() says, the other way round.
  static CERMET_DEVICE int step_of(int element) { return element / (4 * bytes) * words + element % bytes / 4; }
  static CERMET_DEVICE int place_of(int element) {
    return 2 * (element / bytes % 4) + (element % 4 >= 2 ? 8 : 0) + element % 2;
  }
};

/// A lane's elements of key 8 n + lane / 4 for the steps words * i and on.
template <class Rows, int Size>
CERMET_DEVICE void load_quantized_keys(const char* tile, int n, int i, uint32_t (&words)[WideningOrder<Size>::words]) {
  using Order = WideningOrder<Size>;
  const int lane = static_cast<int>(lane_index()), byte = (4 * i + lane % 4) * Order::bytes;
  const auto loaded = *reinterpret_cast<const Vector<uint32_t, Order::words>*>(
      tile + Rows::offset(8 * n + lane / 4, byte / 16) + byte % 16);
#pragma unroll
  for (int w = 0; w < Order::words; ++w) words[w] = loaded[w];
}

/// Columns 16 chunk .. + 15 of 16 values from `first` on, as the right operands of two products: even[] has columns
/// 0, 2, .. of the 16, and odd[] the others; the same of the next chunk, unless that is the last of `Chunks`.
template <DType T, class Rows, int Chunks>
CERMET_DEVICE void load_quantized_values(const char* tile, int first, int chunk, uint32_t (&even)[2][2],
                                         uint32_t (&odd)[2][2]) {
  const int lane = static_cast<int>(lane_index());
  uint32_t v[4];  // [chunk][keys / 8]: two neighbouring columns of two neighbouring keys each
  ptx::ldmatrix_x4_trans(
      v, tile + Rows::offset(first + lane / 8 % 2 * 8 + lane % 8, min_of(chunk + lane / 16, Chunks - 1)));
#pragma unroll
  for (int i = 0; i < 4; ++i)
    to_f16_pairs(__byte_perm(v[i], 0, 0x3120), even[i / 2][i % 2], odd[i / 2][i % 2], Element<T>{});
}

/// Weights times their values' scales must keep their bits in float16: they are multiplied relative to a power of two,
/// the largest of the scales so far, and raised by 2^14, so that none but the last bits of small ones are lost.
struct ValueUnit {
  static constexpr uint32_t least = 27u << 23, raised = 14u << 23;  // 2^-100; an exponent's bits
  uint32_t bits;                                                    ///< of the power of two
  float head_scale;                                                 ///< where values have no scales of their own

  CERMET_DEVICE void clear() { bits = least, head_scale = 1.0f; }
  /// All values have this scale.
  CERMET_DEVICE void set(float scale) { bits = 127u << 23, head_scale = scale; }
  /// Takes a tile's scales, of which each lane knows some. Returns what outputs so far are to be multiplied with; the
  /// same in all lanes.
  CERMET_DEVICE float take(float scale) {
    const uint32_t magnitude = __float_as_uint(scale) & 0x7f800000u,
                   largest = __reduce_max_sync(0xffffffffu, magnitude == 0x7f800000u ? 0u : magnitude);
    if (largest <= bits) return 1.0f;
    const float before = __uint_as_float(bits);
    bits = largest;
    return before * __uint_as_float((254u << 23) - bits);
  }
  /// Factor of a scale, and of the outputs that result.
  CERMET_DEVICE float of_scale() const { return __uint_as_float((254u << 23) + raised - bits); }
  CERMET_DEVICE float of_output() const { return __uint_as_float(bits - raised) * head_scale; }
};

/// The scale of a head, 1 where there is none.
CERMET_DEVICE float head_scale(const KeyList& list, int head) {
  return list.scale ? list.scale[head * list.scale_head_stride] : 1.0f;
}

/// A power of two whose product with elements up to `largest` suits float16, and its inverse.
struct QueryUnit {
  float factor, inverse;
  CERMET_DEVICE explicit QueryUnit(float largest) {
    const uint32_t exponent = min_of(max_of(__float_as_uint(largest) >> 23, 30u), 254u);
    factor = __uint_as_float((254u + 14u - exponent) << 23);
    inverse = __uint_as_float((exponent - 14u) << 23);
  }
};

}  // namespace cermet::attention
