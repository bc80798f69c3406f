// What the thread blocks of decoding attention have in common: stages in shared memory, a tile's way through them, and
// the sum of the warps' parts.
#pragma once

#include "kernel/cuda/device/attention/decode_tile.cuh"
#include "kernel/cuda/device/attention/exact.cuh"

namespace cermet::attention {

/// Factor of a part whose maximum is `maximum` when parts up to `top` (both times log2 e) are added.
CERMET_DEVICE float part_factor(float maximum, float top) {
  return top == -infinity() ? 1.0f : exp2_approximate(maximum - top);
}

/// Four elements of a row's output from element `d` on, and the row's maximum (times log2 e) and sum.
struct RowPart {
  float maximum = -infinity(), sum = 0.0f, output[4] = {};

  CERMET_DEVICE void rescale(float top) {
    const float factor = part_factor(maximum, top);
    maximum = top;
    sum *= factor;
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] *= factor;
  }
  /// Adds a part; both are relative to `top` afterwards, which is the maximum of all parts to come.
  CERMET_DEVICE void add(float part_maximum, float part_sum, const Vector<float, 4>& part_output, float top) {
    const float factor = part_factor(part_maximum, top);
    maximum = top;
    sum = fmaf(part_sum, factor, sum);
#pragma unroll
    for (int e = 0; e < 4; ++e) output[e] = fmaf(part_output[e], factor, output[e]);
  }
};

/// Writes a part of row r of a tile that all its parts were added to, and from d = 0 its lse.
template <DecodeConfig C>
CERMET_DEVICE void write_row(const Params& p, const RowTile& tile, int kv_head, int r, int d, const RowPart& part) {
  using Out = Element<C.out>;
  const int row = tile.first_row + r, token = tile.query_begin + row / C.group,
            head = kv_head * C.group + row % C.group;
  const int position = tile.position + row / C.group;
  const Visible seen = visible_keys(p, position, tile.end_key);
  Finish finish{seen.first < seen.last ? __frcp_rn(part.sum) : 0.0f, 0.0f};
  if (p.sinks || p.lse) finish = finish_row(p.sinks, head, seen.first < seen.last, part.maximum * ln_2, part.sum);
  Vector<Out, 4> o;
  float any = 0.0f;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float x = part.output[e] * finish.factor;
    any += x - x;
    o[e] = from_float<Out>(x);
  }
  Out* to = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride + d;
  if (p.aligned_out) *reinterpret_cast<Vector<Out, 4>*>(to) = o;
  else
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = o[e];
  if (p.lse && d == 0) p.lse[head * p.lse_head_stride + token] = finish.lse;
  if (any == 0.0f || finish.factor != finish.factor) return;
  const ExactRow exact{tile.sequence,       token,        head, kv_head, position, 0, tile.end_key,
                       part.maximum * ln_2, finish.factor};
#pragma unroll 1
  for (int e = 0; e < 4; ++e) repair<ExactConfig{C.head_size, C.block, C.q, C.kv, C.out}>(p, exact, to - d, d + e);
}

template <DecodeConfig C, class Team>
struct DecodeBlock {
  using Load = DecodeLoad<C, Team>;
  using Tile = DecodeTile<C>;
  static constexpr int warps = C.warps, threads = 32 * warps, stages = C.stages, keys = C.tile_keys;
  static constexpr int stage_bytes = decode_stage_bytes(C.head_size, C.value_size, keys);
  /// Floats from one row of a warp's outputs to the next while the warps' are added, in a stage; padded against bank
  /// conflicts where there is room.
  static constexpr int exchange_row = C.rows * (C.value_size + 8) * 4 <= stage_bytes ? C.value_size + 8 : C.value_size;
  static_assert(C.rows * exchange_row * 4 <= stage_bytes);

  struct Shared {
    float* sums;  ///< [warps][rows][2]: maximum and sum
    char* stage;  ///< this warp's first one
    CERMET_DEVICE explicit Shared(char* smem) {
      sums = reinterpret_cast<float*>(smem);
      stage = smem + decode_control_bytes(warps, C.rows) + static_cast<int>(Team::warp()) * stages * stage_bytes;
    }
    CERMET_DEVICE float* outputs(int warp, int at) const {
      return reinterpret_cast<float*>(stage + (warp - static_cast<int>(Team::warp())) * stages * stage_bytes +
                                      at * stage_bytes);
    }
  };

  /// Columns that pad the head size to a multiple of 16 must be finite. Copies leave them as they are; sums that pass
  /// through a stage do not.
  static CERMET_DEVICE void prepare(const Shared& shared, int first_stage = 0, int count = stages) {
    if constexpr (C.head_size % 16 != 0) {
      for (int i = static_cast<int>(lane_index()); i < count * keys; i += 32)
        *reinterpret_cast<Vector<uint32_t, 4>*>(shared.stage + (first_stage + i / keys) * stage_bytes +
                                                Load::K::offset(i % keys, C.head_size / 8)) = {};
      __syncwarp();
    }
  }

  /// Waits for the oldest of `stages` tiles whose copies this warp has started.
  static CERMET_DEVICE void wait() {
    ptx::cp_async_wait<stages - 1>();
    __syncwarp();
  }

  /// One tile through the online softmax. `broken`: the tile needed a page that does not exist.
  static CERMET_DEVICE void consume(const DecodeParams& params, const Place& at, const typename Tile::Queries& queries,
                                    typename Tile::State& state, const char* stage, bool broken) {
    const attention::Params& p = params.a;
    const int first = Load::first_key(at);
    if (first >= at.tile.end_key) return;
    const char* values = stage + Load::K::bytes;
    float scores[keys / 8][4];
    Tile::multiply_keys(queries, stage, scores);
    Tile::finish_scores(p, params.scale_log2, at.tile, at.head, first, scores);
    Tile::update(state, scores);
    Tile::multiply_values(state, scores, values);
    if (broken) state.sum[0] = state.sum[Tile::halves - 1] = quiet_nan();
  }

  /// Adds up the warps' parts of a span, through the stage that they have just read, and calls sink(i, r, d, part) for
  /// every four elements of every used row, i counting them.
  template <class Sink>
  static CERMET_DEVICE void add_warps(const Shared& shared, int rows, const typename Tile::State& state, int stage,
                                      Sink&& sink) {
    const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(Team::warp());
    float* own = shared.outputs(warp, stage);
    __syncwarp();  // other lanes may still be reading the tile
#pragma unroll
    for (int h = 0; h < Tile::halves; ++h) {
      const int r = lane / 4 + 8 * h;
      float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (lane % 4 == 0)
        shared.sums[(warp * C.rows + r) * 2] = state.maximum[h], shared.sums[(warp * C.rows + r) * 2 + 1] = sum;
#pragma unroll
      for (int n = 0; n < C.value_size / 8; ++n) {
        const float* part = state.output[n];
        *reinterpret_cast<Vector<float, 2>*>(own + r * exchange_row + 8 * n + 2 * (lane % 4)) =
            C.rows == 8 ? Vector<float, 2>{part[0] + part[2], part[1] + part[3]}
                        : Vector<float, 2>{part[2 * h], part[2 * h + 1]};
      }
    }
    Team::sync();
    for (int i = static_cast<int>(Team::rank()); i < rows * (C.value_size / 4); i += threads) {
      const int r = i / (C.value_size / 4), d = i % (C.value_size / 4) * 4;
      float top = -infinity();
#pragma unroll
      for (int w = 0; w < warps; ++w) top = fmaxf(top, shared.sums[(w * C.rows + r) * 2]);
      RowPart part;
#pragma unroll
      for (int w = 0; w < warps; ++w)
        part.add(shared.sums[(w * C.rows + r) * 2], shared.sums[(w * C.rows + r) * 2 + 1],
                 *reinterpret_cast<const Vector<float, 4>*>(shared.outputs(w, stage) + r * exchange_row + d), top);
      sink(i, r, d, part);
    }
    Team::sync();
    prepare(shared, stage, 1);
  }
};

}  // namespace cermet::attention
