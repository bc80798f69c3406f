// A row of x in the registers of a warp's lanes, and its products with pieces of rows of the weight.
//
//   a row of the weight      | piece 0 | piece 1 | .. |          512 bytes each (compact: 384)
//   warp a of split_k has      pieces a, split_k + a, 2 split_k + a, ..: warp_pieces of them
//   lane l of the warp has     bytes 16 l .. 16 l + 16 of each piece, and the elements of x that they multiply
#pragma once

#include "kernel/cuda/device/f16_pairs.cuh"
#include "kernel/cuda/device/gemv/gemv.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::gemv {

/// What a lane has of a piece: bytes of the weight, or int8 elements of x.
using Piece = Vector<uint32_t, 4>;

/// Elements of T in a piece of a lane.
template <DType T>
inline constexpr int lane_elements = 16 / static_cast<int>(sizeof(Element<T>));

template <DType W>
inline constexpr bool integer = W == DType::i8;
/// Sums of products.
template <bool Integer>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<true> {
  using type = int32_t;
};
template <DType W>
using Sum = typename SumOf<integer<W>>::type;

CERMET_DEVICE void to_pair(uint32_t packed, float& low, float& high, bf16) {
  low = __uint_as_float(packed << 16);
  high = __uint_as_float(packed & 0xffff0000u);
}
CERMET_DEVICE void to_pair(uint32_t packed, float& low, float& high, f16) {
  low = to_float(f16{static_cast<uint16_t>(packed)});
  high = to_float(f16{static_cast<uint16_t>(packed >> 16)});
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

/// Sums of compact rows come out small: their elements lie below 2^-111. What they are multiplied with is that much
/// larger, so that nothing underflows.
inline constexpr float compact_scale = 0x1p64f;

/// A lane's eight elements of a compact piece in shared memory, as bf16; the layout: kernel/cuda/gemv/compact.hpp. Sign
/// and upper bits of an exponent are four bits in a byte, at 7 and at 2 to 0; those of the last four elements lie
/// between, four bits lower. No exponent has a bit above, so subnormals, which small elements are, need no care.
CERMET_DEVICE Piece compact_piece(const char* piece, int lane) {
  const auto low = reinterpret_cast<const Vector<uint32_t, 2>*>(piece)[lane];
  const uint32_t high = reinterpret_cast<const uint32_t*>(piece + 256)[lane];
  const uint32_t first = high & 0x87878787u, second = __funnelshift_l(high, high, 4) & 0x87878787u;
  Piece w;
  w[0] = __byte_perm(low[0], first, 0x5140);
  w[1] = __byte_perm(low[0], first, 0x7362);
  w[2] = __byte_perm(low[1], second, 0x5140);
  w[3] = __byte_perm(low[1], second, 0x7362);
  return w;
}

/// The 16 bytes at `offset` of a row of `bytes` bytes in global memory, zeros past its end, in units of elements.
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

/// What a lane has of a row of x: floats, or int8 where the weight is int8.
template <DType W, int Pieces, bool Integer = integer<W>>
struct LaneRow {
  float v[Pieces][lane_elements<W>];
};
template <DType W, int Pieces>
struct LaneRow<W, Pieces, true> {
  Piece v[Pieces];
};

/// Products of pieces: multiply-adds in float32, byte dot products for int8. ColumnSums: with the sums of the weight's
/// quantized values, which a zero point needs.
template <DType W, bool ColumnSums>
struct Dot {
  /// Sums of even and of odd elements.
  static CERMET_DEVICE void multiply(const Piece& w, const float (&x)[lane_elements<W>], float& even, float& odd) {
    float v[lane_elements<W>];
    to_floats<W>(w, v);
#pragma unroll
    for (int i = 0; i < lane_elements<W>; i += 2) {
      even = fmaf(v[i], x[i], even);
      odd = fmaf(v[i + 1], x[i + 1], odd);
    }
  }
  static CERMET_DEVICE void multiply(const Piece& w, const Piece& x, int32_t& sum, int32_t& column_sum) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum = __dp4a(static_cast<int>(w[i]), static_cast<int>(x[i]), sum);
      if constexpr (ColumnSums) column_sum = __dp4a(static_cast<int>(w[i]), 0x01010101, column_sum);
    }
  }
  /// Sums of `Count` values over the warp: lane l gets that of value l / (32 / Count).
  template <int Count>
  static CERMET_DEVICE Sum<W> reduce(Sum<W> (&v)[Count]) {
    const int lane = static_cast<int>(lane_index());
    int width = 16;
#pragma unroll
    for (int n = Count; n > 1; n /= 2, width /= 2)
#pragma unroll
      for (int i = 0; i < n / 2; ++i) {
        const bool upper = (lane & width) != 0;
        const Sum<W> give = upper ? v[i] : v[i + n / 2], keep = upper ? v[i + n / 2] : v[i];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, width);
      }
#pragma unroll
    for (; width > 0; width /= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], width);
    return v[0];
  }
};

/// Where a lane's part of a row is.
template <Config C, Shape S>
struct LanePart {
  static constexpr int count = lane_elements<C.w>;
  using Row = LaneRow<C.w, S.warp_pieces>;
  using Numbers = float[S.warp_pieces][count];

  /// The first element of the lane's part of piece j of the warp, which is number `a` of those that divide a row.
  static CERMET_DEVICE int first_of(int j, int a) {
    return ((j * S.split_k + a) * 32 + static_cast<int>(lane_index())) * count;
  }
  template <bool Aligned>
  static CERMET_DEVICE void load_row(const void* row, int64_t first, int a, Numbers& v, auto element) {
    using T = decltype(element);
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j)
      load_floats<Aligned>(static_cast<const T*>(row) + first, first_of(j, a), C.k, v[j]);
  }
  /// Numbers as they are multiplied.
  static CERMET_DEVICE void keep(const Numbers& numbers, Row& x) {
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) x.v[j][i] = C.compact ? numbers[j][i] * compact_scale : numbers[j][i];
  }
};

/// Loads a row of x into registers. HasPrologue: prologue.cuh.
template <Config C, Shape S, class Team, bool HasPrologue = C.prologue.norm || C.prologue.quantize>
struct RowLoader : LanePart<C, S> {
  using Part = LanePart<C, S>;
  using typename Part::Numbers;
  using typename Part::Row;

  static CERMET_DEVICE void prefetch(const Params&, int) {}

  template <bool Aligned>
  static CERMET_DEVICE void read(const Params& p, int row, int a, Numbers& numbers) {
    // One branch for all loads, since code between them that others need is fetched, too, while everything waits.
    if constexpr (!Aligned && C.k % Part::count == 0)
      if (__builtin_expect(p.aligned != 0, true)) return read<true>(p, row, a, numbers);
    Part::template load_row<Aligned>(p.x, row * p.x_stride, a, numbers, Element<C.x>{});
  }
  /// Row `row`, by all consumer warps; `a`: of the warp among the split_k of its set.
  static CERMET_DEVICE float load(const Params& p, int row, int a, bool, Row& x, float*) {
    if constexpr (integer<C.w>) {
      static_assert(C.x == DType::i8);
      const char* const from = static_cast<const char*>(p.x) + row * p.x_stride;
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j) x.v[j] = load_piece<int8_t>(from, Part::first_of(j, a), C.k);
    } else {
      float numbers[S.warp_pieces][Part::count];
      read<false>(p, row, a, numbers);
      Part::keep(numbers, x);
    }
    return 1.0f;
  }
};

}  // namespace cermet::gemv
