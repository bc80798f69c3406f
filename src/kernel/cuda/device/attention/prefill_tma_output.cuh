// How rows of results leave a warp: through shared memory that is its own, in whole rows, or from registers where their
// type or place does not allow it.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma_scores.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

/// Columns [First, First + Count) of rows of results, of which a thread has C.value_columns(). They leave through
/// shared memory with room for rows of so many pieces; the rows of queries, unless another place is given.
template <auto C, int First = 0, int Count = C.value_size, int Room = C.query_pieces()>
struct PrefillOutput {
  using Out = Element<C.out>;
  static constexpr int columns = C.value_columns();
  static constexpr bool fits = sizeof(Out) == 2 && (columns + 63) / 64 <= Room;
  static constexpr int chunks = Count / 8;  // of 16 bytes

  const Params& p;
  const PrefillNote& note;
  const PrefillScores<C>& scores;

  static CERMET_DEVICE int token_of(int row) { return PrefillScores<C>::token_of(row); }
  static CERMET_DEVICE int head_of(int row) { return PrefillScores<C>::head_of(row); }
  CERMET_DEVICE int row_of_half(int h) const { return not_hoisted(scores.first_row) + 8 * h; }

  CERMET_DEVICE Out* row_of(int row) const {
    const int token = note.token + token_of(row), head = note.head + head_of(row);
    return static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride;
  }

  /// rows: the warp's 16 rows there, which nothing reads any more. release(): what is called when they are free, by the
  /// whole warp
  template <class Release>
  CERMET_DEVICE void store(const float (&output)[columns / 2], char* rows, Release release) const {
    const Finish exact[2] = {finish_of(0), finish_of(1)};
    Finish finish[2] = {exact[0], exact[1]};
    if constexpr (C.columns) finish[0].factor *= scores.value_scale, finish[1].factor *= scores.value_scale;
    bool finite[2];
    if constexpr (fits) {
      if (p.aligned_out) {
        store_rows(output, rows, finish, finite, release);
      } else {
        store_elements(output, finish, finite);
        release();
      }
    } else {
      store_elements(output, finish, finite);
      release();
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_of_half(h);
      if (row >= note.rows) continue;
      if (First == 0 && p.lse && lane_index() % 4 == 0)
        p.lse[(note.head + head_of(row)) * p.lse_head_stride + note.token + token_of(row)] = finish[h].lse;
      if (!finite[h] && exact[h].factor == exact[h].factor) repair_row(row, h, exact[h].factor);
    }
  }

 private:
  /// Over the lanes of a row.
  static CERMET_DEVICE float add_lanes(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  CERMET_DEVICE Finish finish_of(int h) const {
    float total = add_lanes(scores.sum[h]), rounded = total;
    if constexpr (C.rounds_sums()) rounded += add_lanes(scores.rounding[h]);
    const int row = row_of_half(h);
    if (row >= note.rows) return {0.0f, 0.0f};
    const Visible seen = visible_keys(p, note.position + token_of(row), note.keys);
    const bool sees = seen.first < seen.last;
    if (note.broken) total = rounded = quiet_nan();
    if (!p.sinks && !p.lse) return {sees ? 1.0f / rounded : 0.0f, 0.0f};
    const auto finish = [&](float sum) {
      return finish_row(p.sinks, note.head + head_of(row), sees, scores.maximum(h), sum);
    };
    return {finish(rounded).factor, finish(total).lse};
  }

  /// sum + 0 * both, in pairs of 16-bit numbers: NaN where one is not finite.
  static CERMET_DEVICE uint32_t add_zero_times(uint32_t both, uint32_t sum, bf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(both), "r"(0));
    return sum;
  }
  static CERMET_DEVICE uint32_t add_zero_times(uint32_t both, uint32_t sum, f16) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(both), "r"(0));
    return sum;
  }

  template <class Release>
  CERMET_DEVICE void store_rows(const float (&output)[columns / 2], char* rows, const Finish (&finish)[2],
                                bool (&finite)[2], Release release) const {
    const int lane = not_hoisted(static_cast<int>(lane_index()));
    const auto place = [&](int row, int chunk) {
      return rows + chunk / 8 * (C.rows() * 128) + row * 128 + (chunk % 8 ^ row % 8) * 16;
    };
    // Chunk 2 d + lane / 16 of row lane % 16, at place().
    char* const own_row = rows + lane % 16 * 128;
    const int own_chunk = (lane / 16 ^ lane % 8) * 16;
    uint32_t any[2] = {0, 0};
#pragma unroll
    for (int d = 0; d < columns / 16; ++d) {
      uint32_t both[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float factor = finish[i % 2].factor;
        both[i] = pack(output[8 * d + 2 * i] * factor, output[8 * d + 2 * i + 1] * factor, Out{});
        if (16 * d + i / 2 * 8 < Count) any[i % 2] = add_zero_times(both[i], any[i % 2], Out{});
      }
      ptx::stmatrix_x4(own_row + d / 4 * (C.rows() * 128) + (not_hoisted(own_chunk) ^ d % 4 * 32), both);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) finite[h] = (any[h] & 0x7fff7fffu) == 0;
    __syncwarp();
    // All of it is read before anything is stored: a fence behind stores would wait for them.
    constexpr int all = 16 * chunks, steps = (all + 31) / 32;
    uint4 held[steps];
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int at = 32 * i + not_hoisted(lane);
      if (all % 32 == 0 || at < all) held[i] = *reinterpret_cast<const uint4*>(place(at / chunks, at % chunks));
    }
    ptx::fence_async_shared();
    release();
    const int first = scores.first_row - lane / 4;
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int at = 32 * i + not_hoisted(lane), row = first + at / chunks;
      if ((all % 32 == 0 || at < all) && row < note.rows)
        *reinterpret_cast<uint4*>(row_of(row) + First + 8 * (at % chunks)) = held[i];
    }
  }

  CERMET_DEVICE void store_elements(const float (&output)[columns / 2], const Finish (&finish)[2],
                                    bool (&finite)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_of_half(h);
      const float factor = finish[h].factor;
      float any = 0.0f;
#pragma unroll
      for (int d = 0; d < chunks; ++d)
        any = fmaf(output[4 * d + 2 * h] * factor, 0.0f, fmaf(output[4 * d + 2 * h + 1] * factor, 0.0f, any));
      finite[h] = any == 0.0f;
      if (row >= note.rows) continue;
      Out* const to = row_of(row) + First + 2 * (lane_index() % 4);
#pragma unroll
      for (int d = 0; d < chunks; ++d) {
        const Vector<Out, 2> pair{from_float<Out>(output[4 * d + 2 * h] * factor),
                                  from_float<Out>(output[4 * d + 2 * h + 1] * factor)};
        if (p.aligned_out) *reinterpret_cast<Vector<Out, 2>*>(to + 8 * d) = pair;
        else to[8 * d] = pair[0], to[8 * d + 1] = pair[1];
      }
    }
  }

  CERMET_DEVICE void repair_row(int row, int h, float factor) const {
    const int head = note.head + head_of(row), first = First + 2 * static_cast<int>(lane_index() % 4);
    const ExactRow exact{
        note.sequence, note.token + token_of(row), head,  note.kv_head, note.position + token_of(row), note.key_begin,
        note.keys,     scores.maximum(h),          factor};
#pragma unroll 1
    for (int i = 0; i < Count / 4; ++i)
      repair<ExactConfig{C.head_size, C.block, C.kv, C.kv, C.out, C.columns}>(p, exact, row_of(row),
                                                                              i / 2 * 8 + first + i % 2);
  }
};

}  // namespace cermet::attention
#endif
