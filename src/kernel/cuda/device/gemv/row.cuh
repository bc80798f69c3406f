// A row of x in the registers of a warp's lanes, its products with pieces of rows of the weight, and which results an
// item has.
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

/// Quantized values of 16 numbers as a lane has them: as they are, or fp8 as numbers again.
template <DType T>
CERMET_DEVICE void keep_quantized(const Vector<Element<T>, 16>& quantized, Piece& to) {
  to = __builtin_bit_cast(Piece, quantized);
}
template <DType T>
CERMET_DEVICE void keep_quantized(const Vector<Element<T>, 16>& quantized, float (&to)[16]) {
  to_floats<T>(__builtin_bit_cast(Piece, quantized), to);
}

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

/// Columns [first, end) of row `row` of y, which are products of row x_row of x with the weight of `group`.
struct Segment {
  int row = 0, group = 0, first = 0, end = 0;
  int x_row = 0;
};

/// The results of an item: where they begin, in row-major order, and how many they are.
struct Share {
  int row = 0, column = 0, count = 0;

  Share() = default;
  CERMET_DEVICE Share(const Params& p, uint32_t item) {
    const int64_t begin = share_begin(p.share, p.remainder, p.inverse, item);
    count = static_cast<int>(share_begin(p.share, p.remainder, p.inverse, item + 1) - begin);
    int64_t left = begin;
    for (; left >= p.columns; left -= p.columns) ++row;  // rows are few
    column = static_cast<int>(left);
  }
  CERMET_DEVICE bool is_first() const { return row == 0 && column == 0; }
  /// Keeps the compiler from computing it after the wait for earlier launches.
  CERMET_DEVICE void settle() const { asm volatile("" ::"r"(row), "r"(column), "r"(count)); }
  CERMET_DEVICE Segment first_segment(const Params& p) const {
    return {row, 0, column, min_of(p.columns, column + count), row};
  }
  /// Calls body(segment) for each, with the weights that `rows` finds where there are several. Whole warps call.
  template <class Rows, class Body>
  CERMET_DEVICE void for_segments(const Params& p, const Rows& rows, Body&& body) const {
    Share at = *this;
    while (at.count > 0) {
      Segment s = at.first_segment(p);
      at.row = at.row + 1, at.column = 0, at.count = at.count - (s.end - s.first);
      if constexpr (requires { rows.find(p, s); })
        if (!rows.find(p, s)) continue;
      body(s);
    }
  }
};

/// The shape of a kernel, and a warp's products of a stage. E: the epilogue, see tile/epilogue.cuh.
template <Config C, class E>
struct Products {
  using S32 = Sum<C.w>;
  using Arithmetic = Dot<C.w, E::column_sums>;
  static constexpr int element = static_cast<int>(sizeof(Element<C.w>));
  static constexpr bool ordered = integer<C.w> && C.blocked;  ///< scaled sums of blocks are added in order
  static constexpr int matrices = C.dual ? 2 : 1;
  static constexpr int sums =
      matrices + (E::column_sums ? 1 : 0);  ///< of a result; the last is that of the weight's quantized values
  static constexpr Shape S = shape_of(C, element, ordered, sums);
  static constexpr int warp_rows = S.stage_rows / S.sets;  ///< rows of a stage that a warp takes
  using Row = LaneRow<C.w, S.warp_pieces>;
  static_assert(!C.stream || S.row_bytes % 16 == 0);
  static_assert(!C.compact || (C.stream && C.w == DType::bf16 && C.k % compact_piece_elements == 0));
  static_assert(!(E::column_sums && (C.dual || C.blocked)));

  /// A segment while its rows go by.
  struct Pass {
    const Params& p;
    const Segment& s;
    const Row& x;
    S32* partial;
    int a, set, lane;  ///< a: of the warp among the split_k of its set
    float row_scale;   ///< of a row that was quantized here
    bool dry_run;      ///< with whatever is in the stages, and no results
    float x_scales[C.blocked && !integer<C.w> ? S.warp_pieces : 1];
    /// The row of the segment's stages that is row r of the warp's in the stage from `row` on.
    CERMET_DEVICE int row_of(int row, int r) const { return row + r * S.sets + set; }
  };

  /// What a lane adds up for the rows of a stage.
  struct Sums {
    S32 value[warp_rows], other[warp_rows];  ///< other: odd elements (real), quantized values of the weight (int8)
    CERMET_DEVICE void clear() {
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) value[r] = other[r] = 0;
    }
  };

  /// Adds pieces [first, last) of the warp: piece j of its row r in the stage is piece_at(r, j). Scales of `matrix` 1,
  /// which is the other half of the first, follow its own.
  template <class PieceAt>
  static CERMET_DEVICE void multiply_rows(const Pass& pass, int row, [[maybe_unused]] int matrix, int first, int last,
                                          Sums& sums, S32* partial, PieceAt&& piece_at) {
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j) {
      if (j < first || j >= last) continue;
      const int piece = j * S.split_k + pass.a;
      if (S.pieces % S.split_k != 0 && piece >= S.pieces) continue;
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) {
        const Piece w = piece_at(r, j);
        if constexpr (ordered) {
          int32_t block = 0, ones = 0;
          Arithmetic::multiply(w, pass.x.v[j], block, ones);
#pragma unroll
          for (int width = 4; width > 0; width /= 2) block += __shfl_xor_sync(0xffffffffu, block, width);
          const int slot = piece * 4 + pass.lane / 8, at = pass.row_of(row, r) % batch;
          if (pass.lane % 8 == 0 && slot < S.partials) partial[at * S.partials + slot] = block;
        } else if constexpr (C.blocked) {
          float even = 0, odd = 0;
          Arithmetic::multiply(w, pass.x.v[j], even, odd);
          const int block = piece * 4 + pass.lane / 8,
                    column = min_of(pass.s.first + pass.row_of(row, r), pass.s.end - 1);
          const int64_t at = pass.s.group * pass.p.w_scale_group_stride +
                             (column + matrix * pass.p.columns) / pass.p.w_scale_columns * pass.p.w_scale_stride;
          const bool inside = block * scale_block < C.k;
          const float w_scale =
              pass.p.w_scale == nullptr || !inside ? 1.0f : pass.p.w_scale[at + block * pass.p.w_scale_block];
          sums.value[r] += inside ? pass.x_scales[j] * w_scale * (even + odd) : 0.0f;
        } else {
          Arithmetic::multiply(w, pass.x.v[j], sums.value[r], sums.other[r]);
        }
      }
    }
  }

  /// The warp's sums of a stage's rows, which start at `row` of the segment, to partial [batch][partials].
  static CERMET_DEVICE void store_partials(const Pass& pass, int row, Sums& sums, S32* partial) {
    if constexpr (!ordered) {
      if constexpr (!integer<C.w>)
#pragma unroll
        for (int r = 0; r < warp_rows; ++r) sums.value[r] += sums.other[r];
      const int r = pass.lane / (32 / warp_rows);
      S32* const to = partial + pass.row_of(row, r) % batch * S.partials + pass.a;
      const S32 sum = Arithmetic::reduce(sums.value);
      if (pass.lane % (32 / warp_rows) == 0) *to = sum;
      if constexpr (E::column_sums) {
        const S32 ones = Arithmetic::reduce(sums.other);
        if (pass.lane % (32 / warp_rows) == 0) to[batch * S.partials] = ones;
      }
    }
  }

  /// The scaled sums of a column's blocks, in order; no step may be contracted with another, so that int8 gives every
  /// kernel's bits.
  static CERMET_DEVICE float add_blocks(const Pass& pass, int column, const S32* own) {
    const Params& p = pass.p;
    const int64_t at = pass.s.group * p.w_scale_group_stride + column / p.w_scale_columns * p.w_scale_stride;
    float total = 0;
    for (int block = 0; block < S.partials; ++block) {
      const float w_scale = p.w_scale == nullptr ? 1.0f : p.w_scale[at + block * p.w_scale_block];
      const float row_scale =
          p.x_scale == nullptr ? 1.0f : p.x_scale[pass.s.row * p.x_scale_stride + block * p.x_scale_block];
      const float term = __fmul_rn(row_scale, __fmul_rn(w_scale, static_cast<float>(own[block])));
      total = block == 0 ? term : __fadd_rn(total, term);
    }
    return total;
  }
};

}  // namespace cermet::gemv
