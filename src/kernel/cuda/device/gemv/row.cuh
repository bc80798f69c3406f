// GEMV of one row of x at a time: the weights stream by, each warp keeps its part of x in registers. For one row, for
// rows that have weights of their own (experts), and wherever nothing better fits. Multiply-adds in float32, byte dot
// products for int8.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemv/prologue.cuh"
#include "kernel/cuda/device/gemv/ring.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemv {

/// E: the epilogue, see tile/epilogue.cuh.
template <Config C, class E>
struct Row {
  using Params = gemv::Params;
  using W = Element<C.w>;
  using S32 = Sum<C>;
  static constexpr bool ordered = integer<C> && C.blocked;  ///< scaled sums of blocks are added in order
  static constexpr int matrices = C.dual ? 2 : 1, element = static_cast<int>(sizeof(W));
  static constexpr int sums = matrices + (E::column_sums ? 1 : 0);  ///< of a result; the last is that of the weight's quantized values
  static constexpr RowShape S = row_shape(C.k, element, C.stream, ordered, sums);
  using Factors = epilogue::ValuesOf<E>;
  static constexpr int partial_at = S.ring_bytes(), scratch_at = partial_at + up(S.partial_bytes(), 16) * 16;  ///< in shared memory
  static constexpr int barriers_at = scratch_at + RowShape::scratch_bytes;
  static_assert(barriers_at + 16 * S.stages == S.shared_bytes());
  static constexpr int mine = S.stage_rows / S.side;  ///< rows of a stage that a team takes
  using Loader = RowLoader<C, S>;
  using Held = typename Loader::Held;
  static_assert(!C.stream || S.row_bytes % 16 == 0);
  static_assert(!(C.dual && C.blocked) && !(C.dual && C.grouped) && !(E::column_sums && (C.dual || C.blocked)));

  /// Columns [first, end) of row `row`, whose weight is that of `group`.
  struct Segment {
    int row = 0, group = 0, first = 0, end = 0;
  };
  struct Place {
    S32* partial;    ///< [2][sums][batch][slots]
    float* scratch;  ///< two for each warp
    char* ring;
    uint64_t* barriers;
    __device__ explicit Place(char* smem)
        : partial(reinterpret_cast<S32*>(smem + partial_at)),
          scratch(reinterpret_cast<float*>(smem + scratch_at)),
          ring(smem),
          barriers(reinterpret_cast<uint64_t*>(smem + barriers_at)) {}
  };

  static __device__ __forceinline__ int64_t begin_of(const Params& p, uint32_t item) {
    return static_cast<int64_t>(p.rows) * p.columns * item / static_cast<uint32_t>(p.shares);
  }
  /// Calls body(segment) for the results [begin, end) in row-major order. Whole warps call.
  template <class Body>
  static __device__ __forceinline__ void for_segments(const Params& p, uint32_t item, Body&& body) {
    const int64_t end = begin_of(p, item + 1);
    for (int64_t at = begin_of(p, item); at < end;) {
      Segment s;
      s.row = static_cast<int>(at / p.columns);
      s.first = static_cast<int>(at % p.columns);
      s.end = static_cast<int>(min_of<int64_t>(p.columns, s.first + (end - at)));
      at += s.end - s.first;
      if constexpr (C.grouped) {
        const auto found = gemm::find_group(static_cast<const Element<C.offsets>*>(p.offsets), p.groups, p.rows, 1, s.row);
        if (found.group < 0) continue;
        s.group = found.group;
        s.row = found.row;
      }
      body(s);
    }
  }

#if CERMET_ARCH >= 900
  static constexpr RingShape ring_shape{S.stage_rows, S.chunk, S.chunks, S.row_bytes, S.stages > 0 ? S.stages : 1, S.stage_bytes(), matrices, S.warps, element};
  using Queue = Ring<ring_shape>;

  static __device__ __forceinline__ WeightRows weights_of(const Params& p, const Segment& s) {
    const char* const w = static_cast<const char*>(p.w) + s.group * p.w_group_stride * element;
    return {{w, static_cast<const char*>(p.w_up)}, {p.w_stride * element, p.w_up_stride * element}, s.first, s.end};
  }

  static __device__ __forceinline__ void feed(const Params& p, uint32_t item, const Place& place) {
    Queue queue(place.ring, place.barriers);
    const uint64_t policy = ptx::evict_first_policy();
    int started = 0;  // of the first segment
    if (starts_early(p)) {
      const Segment s = first_segment(p, item);
      started = min_of(Queue::steps(weights_of(p, s)), S.stages);
      queue.stage = started % S.stages;
      queue.parity = static_cast<uint32_t>(started / S.stages);
    }
    for_segments(p, item, [&](const Segment& s) {
      const WeightRows w = weights_of(p, s);
      const int steps = Queue::steps(w);
#pragma unroll 1
      for (int i = started; i < steps; ++i) queue.fill(w, i, policy);
      started = 0;
    });
  }
#endif

  static __device__ __forceinline__ bool starts_early(const Params& p) { return !C.grouped && p.constant != 0; }
  static __device__ __forceinline__ Segment first_segment(const Params& p, uint32_t item) {
    const int64_t begin = begin_of(p, item), end = begin_of(p, item + 1);
    if (begin >= end) return {};
    const int first = static_cast<int>(begin % p.columns);
    return {static_cast<int>(begin / p.columns), 0, first, static_cast<int>(min_of<int64_t>(p.columns, first + (end - begin)))};
  }

  /// One piece of a lane times what the lane holds of x.
  static __device__ __forceinline__ void multiply(const Piece& w, const float (&x)[lane_elements<C.w>], float& even, float& odd) {
    float v[lane_elements<C.w>];
    to_floats<C.w>(w, v);
#pragma unroll
    for (int i = 0; i < lane_elements<C.w>; i += 2) {
      even = fmaf(v[i], x[i], even);
      odd = fmaf(v[i + 1], x[i + 1], odd);
    }
  }
  /// `ones` gets the sum of the weight's quantized values, which a zero point needs.
  static __device__ __forceinline__ void multiply(const Piece& w, const Piece& x, int32_t& even, int32_t& ones) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      even = __dp4a(static_cast<int>(w[i]), static_cast<int>(x[i]), even);
      if constexpr (E::column_sums) ones = __dp4a(static_cast<int>(w[i]), 0x01010101, ones);
    }
  }

  /// Sums of `Count` values over the warp: lane l gets that of value l / (32 / Count).
  template <int Count>
  static __device__ __forceinline__ S32 fold(S32 (&v)[Count]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int width = 16;
#pragma unroll
    for (int n = Count; n > 1; n /= 2, width /= 2)
#pragma unroll
      for (int i = 0; i < n / 2; ++i) {
        const bool upper = (lane & width) != 0;
        const S32 give = upper ? v[i] : v[i + n / 2], keep = upper ? v[i + n / 2] : v[i];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, width);
      }
#pragma unroll
    for (; width > 0; width /= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], width);
    return v[0];
  }

  /// What a lane adds up for the rows of a stage.
  struct Sums {
    S32 value[mine], other[mine];  ///< other: odd elements (real), quantized values of the weight (int8)
    __device__ __forceinline__ void clear() {
#pragma unroll
      for (int r = 0; r < mine; ++r) value[r] = other[r] = 0;
    }
  };

  /// State of a segment while its rows go by.
  struct Pass {
    const Params& p;
    const Segment& s;
    const Held& x;
    S32* partial;
    int a, team, lane;  ///< place along the row, team of warps
    float x_scales[C.blocked && !integer<C> ? S.held : 1];
  };

  /// Piece j of this warp, of row r of its rows in the stage, is at from(r, j).
  template <class From>
  static __device__ __forceinline__ void multiply_rows(const Pass& pass, int row, int first_piece, int last_piece, Sums& sums, S32* partial, From&& from) {
#pragma unroll
    for (int j = 0; j < S.held; ++j) {
      if (j < first_piece || j >= last_piece) continue;
      const int piece = j * S.along + pass.a;
      if (S.pieces % S.along != 0 && piece >= S.pieces) continue;
#pragma unroll
      for (int r = 0; r < mine; ++r) {
        const Piece w = from(r, j);
        if constexpr (ordered) {
          int32_t block = 0, ones = 0;
          multiply(w, pass.x.v[j], block, ones);
#pragma unroll
          for (int width = 4; width > 0; width /= 2) block += __shfl_xor_sync(0xffffffffu, block, width);
          const int slot = piece * 4 + pass.lane / 8, at = (row + r * S.side + pass.team) % batch;
          if (pass.lane % 8 == 0 && slot < S.slots) partial[at * S.slots + slot] = block;
        } else if constexpr (C.blocked) {
          float even = 0, odd = 0;
          multiply(w, pass.x.v[j], even, odd);
          const int block = piece * 4 + pass.lane / 8, column = min_of(pass.s.first + row + r * S.side + pass.team, pass.s.end - 1);
          const int64_t at = pass.s.group * pass.p.w_scale_group_stride + column / pass.p.w_scale_columns * pass.p.w_scale_stride;
          const bool inside = block * scale_block < C.k;
          const float w_scale = pass.p.w_scale == nullptr || !inside ? 1.0f : pass.p.w_scale[at + block * pass.p.w_scale_block];
          sums.value[r] += inside ? pass.x_scales[j] * w_scale * (even + odd) : 0.0f;
        } else {
          multiply(w, pass.x.v[j], sums.value[r], sums.other[r]);
        }
      }
    }
  }

  /// Passes the sums of a stage's rows, which start at `row` of the segment, to the reduction.
  static __device__ __forceinline__ void hand_over(const Pass& pass, int row, Sums& sums, S32* partial) {
    if constexpr (!ordered) {
      if constexpr (!integer<C>)
#pragma unroll
        for (int r = 0; r < mine; ++r) sums.value[r] += sums.other[r];
      const int r = pass.lane / (32 / mine);
      S32* const to = partial + (row + r * S.side + pass.team) % batch * S.slots + pass.a;
      const S32 sum = fold(sums.value);
      if (pass.lane % (32 / mine) == 0) *to = sum;
      if constexpr (E::column_sums) {
        const S32 ones = fold(sums.other);
        if (pass.lane % (32 / mine) == 0) to[batch * S.slots] = ones;
      }
    }
  }

  /// The thread that finishes a row of a batch is the first of `lanes`.
  static constexpr int lanes = ordered ? 1 : S.along;

  /// Adds up `rows` rows from `row` of the segment on and stores them. `factors` are those of this thread's row, and become those of the next batch.
  static __device__ __forceinline__ void finish_batch(const Pass& pass, int row, int rows, const S32* partial, Factors& factors) {
    ptx::named_barrier(1, 32 * S.warps);
    const int thread = static_cast<int>(threadIdx.x), r = thread / lanes, q = thread % lanes;
    if (thread >= batch * lanes) return;
    typename SumOf<integer<C> && !ordered>::type value[sums];
#pragma unroll
    for (int m = 0; m < sums; ++m) {
      const S32* const own = partial + (m * batch + r) * S.slots;
      if constexpr (ordered) {
        value[m] = add_blocks(pass, min_of(pass.s.first + row + r, pass.s.end - 1), own);
      } else {
        value[m] = own[q];
#pragma unroll
        for (int width = lanes / 2; width > 0; width /= 2) value[m] += __shfl_xor_sync(0xffffffffu, value[m], width);
      }
    }
    if (q == 0 && r < rows) {
      const int column = pass.s.first + row + r;
      store(pass.p, pass.s.row, column, value, factors);
      if (column + batch < pass.s.end) epilogue::load_place<E>(pass.p.extra, pass.s.row, column + batch, pass.s.group, factors);
    }
  }

  /// The scaled sums of a column's blocks, in order; no step may be contracted with another, so that int8 gives every kernel's bits.
  static __device__ __forceinline__ float add_blocks(const Pass& pass, int column, const S32* own) {
    const Params& p = pass.p;
    const int64_t at = pass.s.group * p.w_scale_group_stride + column / p.w_scale_columns * p.w_scale_stride;
    float total = 0;
    for (int block = 0; block < S.slots; ++block) {
      const float w_scale = p.w_scale == nullptr ? 1.0f : p.w_scale[at + block * p.w_scale_block];
      const float row_scale = p.x_scale == nullptr ? 1.0f : p.x_scale[pass.s.row * p.x_scale_stride + block * p.x_scale_block];
      const float term = __fmul_rn(row_scale, __fmul_rn(w_scale, static_cast<float>(own[block])));
      total = block == 0 ? term : __fadd_rn(total, term);
    }
    return total;
  }

  template <class Value>
  static __device__ __forceinline__ void store(const Params& p, int row, int column, const Value (&value)[sums], const Factors& factors) {
    using Out = Element<E::out>;
    Out& y = static_cast<Out*>(p.y)[row * p.y_stride + column];
    if constexpr (sums == 2) y = epilogue::rounded<Out>(E::value(value[0], value[1], factors));
    else y = epilogue::rounded<Out>(E::value(value[0], factors));
  }

  template <class Source>
  static __device__ __forceinline__ void multiply_segment(const Params& p, const Segment& s, const Place& place, int& buffer, Source&& source) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    Held x;
    Loader::load(p, s.row, warp % S.along, s.first == 0 && warp < S.along, x, place.scratch);
    Pass pass{p, s, x, place.partial, warp % S.along, warp / S.along, lane, {}};
    if constexpr (C.blocked && !integer<C>)
#pragma unroll
      for (int j = 0; j < S.held; ++j) {
        const int block = min_of((j * S.along + pass.a) * 4 + lane / 8, (C.k - 1) / scale_block);
        pass.x_scales[j] = p.x_scale == nullptr ? 1.0f : p.x_scale[s.row * p.x_scale_stride + block * p.x_scale_block];
      }
    const int columns = s.end - s.first, own = static_cast<int>(threadIdx.x) / lanes;
    Factors factors;  // loaded well before the sums are there
    if (static_cast<int>(threadIdx.x) % lanes == 0 && own < min_of(batch, columns)) {
      epilogue::load_row<E>(p.extra, s.row, s.group, factors);
      epilogue::load_place<E>(p.extra, s.row, s.first + own, s.group, factors);
    }
#pragma unroll 1
    for (int row = 0; row < columns; row += S.stage_rows) {
      S32* const partial = place.partial + buffer * sums * batch * S.slots;
#pragma unroll
      for (int m = 0; m < matrices; ++m) {
        Sums own_sums;
        own_sums.clear();
        source(pass, row, m, own_sums, partial + m * batch * S.slots);
        hand_over(pass, row, own_sums, partial + m * batch * S.slots);
      }
      const int first = row / batch * batch;
      if (row + S.stage_rows == first + batch || row + S.stage_rows >= columns) {
        finish_batch(pass, first, min_of(batch, columns - first), partial, factors);
        buffer ^= 1;
      }
    }
  }

  /// Weights straight from memory.
  static __device__ __forceinline__ void run_direct(const Params& p, uint32_t item, const Place& place) {
    int buffer = 0;
    for_segments(p, item, [&](const Segment& s) {
      const char* const base = static_cast<const char*>(p.w) + s.group * p.w_group_stride * element;
      multiply_segment(p, s, place, buffer, [&](const Pass& pass, int row, int m, Sums& sums, S32* partial) {
        const char* const matrix = m == 0 ? base : static_cast<const char*>(p.w_up);
        const int64_t stride = (m == 0 ? p.w_stride : p.w_up_stride) * element;
        multiply_rows(pass, row, 0, S.held, sums, partial, [&](int r, int j) {
          const int column = min_of(s.first + row + r * S.side + pass.team, s.end - 1);
          return load_piece<W>(matrix + column * stride, ((j * S.along + pass.a) * 32 + pass.lane) * 16, S.row_bytes);
        });
      });
    });
  }

#if CERMET_ARCH >= 900
  static __device__ __forceinline__ void run_stream(const Params& p, uint32_t item, const Place& place) {
    Queue queue(place.ring, place.barriers);
    int buffer = 0;
    constexpr int per_chunk = S.chunks == 1 ? S.held : S.chunk / (piece_bytes * S.along);  // pieces of a warp in a stage
    for_segments(p, item, [&](const Segment& s) {
      multiply_segment(p, s, place, buffer, [&](const Pass& pass, int row, int, Sums& sums, S32* partial) {
#pragma unroll
        for (int chunk = 0; chunk < S.chunks; ++chunk) {
          const char* const stage = queue.wait() + pass.a * piece_bytes + pass.lane * 16;
          multiply_rows(pass, row, chunk * per_chunk, (chunk + 1) * per_chunk, sums, partial, [&](int r, int j) {
            const int offset = (j - chunk * per_chunk) * S.along * piece_bytes;
            Piece w{};
            if (S.row_bytes % (piece_bytes * S.along) == 0 || ((j * S.along + pass.a) * 32 + pass.lane) * 16 < S.row_bytes)
              w = *reinterpret_cast<const Piece*>(stage + (r * S.side + pass.team) * S.chunk + offset);
            return w;
          });
          queue.release();
        }
      });
    });
  }
#endif

  /// Everything up to the first access to what earlier tasks write: weights begin to flow.
  static __device__ void start(const Params& p, uint32_t item, char* smem) {
#if CERMET_ARCH >= 900
    if constexpr (C.stream) {
      if (threadIdx.x / 32 != S.warps) return;
      const Place place(smem);
      Queue queue(place.ring, place.barriers);
      if (threadIdx.x % 32 == 0) queue.init();
      __syncwarp();
      if (!starts_early(p)) return;
      const WeightRows w = weights_of(p, first_segment(p, item));
      const int steps = min_of(Queue::steps(w), S.stages);
      const uint64_t policy = ptx::evict_first_policy();
#pragma unroll 1
      for (int i = 0; i < steps; ++i) queue.fill(w, i, policy);
    }
#endif
  }

  static __device__ void finish(const Params& p, uint32_t item, char* smem) {
    const Place place(smem);
#if CERMET_ARCH >= 900
    if constexpr (C.stream) {
      __syncthreads();
      if (threadIdx.x / 32 == S.warps) feed(p, item, place);
      else run_stream(p, item, place);
    } else {
      run_direct(p, item, place);
    }
#else
    static_assert(!C.stream);
    run_direct(p, item, place);
#endif
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    start(p, item, smem);
    finish(p, item, smem);
  }
};

}  // namespace cermet::gemv
