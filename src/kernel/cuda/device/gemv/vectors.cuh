// Sixteen bytes of a weight as numbers, and the elements of x that they multiply.
#pragma once

#include "kernel/cuda/device/gemv/config.cuh"

namespace cermet::gemv {

using Piece = Vector<uint32_t, 4>;

/// Elements of T in a piece of a lane.
template <DType T>
inline constexpr int lane_elements = 16 / static_cast<int>(sizeof(Element<T>));

CERMET_DEVICE void to_pair(uint32_t packed, float& low, float& high, bf16) {
  low = __uint_as_float(packed << 16);
  high = __uint_as_float(packed & 0xffff0000u);
}
CERMET_DEVICE void to_pair(uint32_t packed, float& low, float& high, f16) {
  low = to_float(f16{static_cast<uint16_t>(packed)});
  high = to_float(f16{static_cast<uint16_t>(packed >> 16)});
}
/// Four fp8 as two registers of f16 pairs, exactly.
CERMET_DEVICE void to_f16_pairs(uint32_t packed, uint32_t& low, uint32_t& high, f8_e4m3) {
#if CERMET_ARCH >= 890
  asm("{\n .reg .b16 a, b;\n mov.b32 {a, b}, %2;\n cvt.rn.f16x2.e4m3x2 %0, a;\n cvt.rn.f16x2.e4m3x2 %1, b;\n}"
      : "=r"(low), "=r"(high)
      : "r"(packed));
#else
  const auto half = [](uint32_t byte) -> uint32_t {
    return from_float<f16>(to_float(f8_e4m3{static_cast<uint8_t>(byte)})).bits;
  };
  low = half(packed) | half(packed >> 8) << 16;
  high = half(packed >> 16) | half(packed >> 24) << 16;
#endif
}
CERMET_DEVICE void to_f16_pairs(uint32_t packed, uint32_t& low, uint32_t& high, f8_e5m2) {
  low = __byte_perm(packed, 0, 0x1404);  // each byte is the upper half of an f16
  high = __byte_perm(packed, 0, 0x3424);
}

/// The elements of a lane's piece as float32, exactly.
template <DType T>
CERMET_DEVICE void to_floats(const Piece& piece, float (&v)[lane_elements<T>]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (T == DType::f32) {
      v[i] = __uint_as_float(piece[i]);
    } else if constexpr (sizeof(Element<T>) == 2) {
      to_pair(piece[i], v[2 * i], v[2 * i + 1], Element<T>{});
    } else {
      uint32_t low, high;
      to_f16_pairs(piece[i], low, high, Element<T>{});
      to_pair(low, v[4 * i], v[4 * i + 1], f16{});
      to_pair(high, v[4 * i + 2], v[4 * i + 3], f16{});
    }
  }
}

/// Elements [first, first + Count) of a row of `length`, zeros past its end; Count and length make whole groups where
/// the row is aligned. What is not aligned goes by single elements, in a loop: code that is jumped over is fetched,
/// too, while everything waits. Aligned: known to be, and length a multiple of Count.
template <bool Aligned = false, class T, int Count>
CERMET_DEVICE void load_floats(const T* row, int first, int length, float (&v)[Count]) {
  constexpr int width = min_of(Count, per_16_bytes<T>);
  const T* const from = row + first;
  if (Aligned ? first < length
              : first + Count <= length && reinterpret_cast<uintptr_t>(from) % (width * sizeof(T)) == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += width) {
      const auto part = *reinterpret_cast<const Vector<T, width>*>(from + i);
#pragma unroll
      for (int j = 0; j < width; ++j) v[i + j] = to_float(part[j]);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < Count; ++j) v[j] = 0;
  if constexpr (!Aligned) {
#pragma unroll 1
    for (int i = 0; i < min_of(Count, length - first); ++i) {
      const float element = to_float(from[i]);
#pragma unroll
      for (int j = 0; j < Count; ++j) v[j] = i == j ? element : v[j];
    }
  }
}

/// The other way round.
template <bool Aligned = false, class T, int Count>
CERMET_DEVICE void store_floats(T* row, int first, int length, const float (&v)[Count]) {
  constexpr int width = min_of(Count, per_16_bytes<T>);
  T* const to = row + first;
  if (Aligned ? first < length
              : first + Count <= length && reinterpret_cast<uintptr_t>(to) % (width * sizeof(T)) == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += width) {
      Vector<T, width> part;
#pragma unroll
      for (int j = 0; j < width; ++j) part[j] = from_float<T>(v[i + j]);
      *reinterpret_cast<Vector<T, width>*>(to + i) = part;
    }
  } else if constexpr (!Aligned) {
#pragma unroll 1
    for (int i = 0; i < min_of(Count, length - first); ++i) {
      float element = v[0];
#pragma unroll
      for (int j = 1; j < Count; ++j) element = i == j ? v[j] : element;
      to[i] = from_float<T>(element);
    }
  }
}

/// The 16 bytes at `offset` of a row of `bytes` bytes, zeros past its end, in units of elements.
template <class T>
CERMET_DEVICE Piece load_piece(const char* row, int offset, int bytes) {
  const char* const from = row + offset;
  Piece piece{};
  if (offset + 16 <= bytes && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(piece[0]), "=r"(piece[1]), "=r"(piece[2]), "=r"(piece[3])
                 : "l"(from));
    return piece;
  }
  constexpr int size = static_cast<int>(sizeof(T));
  using Unit = Unsigned<size>;
#pragma unroll 1
  for (int i = 0; i < min_of(16, bytes - offset); i += size) {
    const uint32_t unit = static_cast<uint32_t>(*reinterpret_cast<const Unit*>(from + i)) << 8 * (i % 4);
#pragma unroll
    for (int word = 0; word < 4; ++word) piece[word] |= i / 4 == word ? unit : 0;
  }
  return piece;
}

}  // namespace cermet::gemv
