// Warps of a block that have 16 rows each, of all columns. Where there are no more rows than half of them hold, two
// warps have the same rows, and every second tile of keys each.
#pragma once

#include "kernel/cuda/device/attention/decode_shared_load.cuh"
#include "kernel/cuda/device/attention/decode_shared_rows.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeRows {
  using Load = SharedTileLoader<C, Team>;
  static constexpr DecodeConfig warp_config = [] {
    DecodeConfig c = C;
    c.rows = decode_warp_rows;
    return c;
  }();
  using Mma = DecodeMma<warp_config>;
  static constexpr int stage_bytes = Load::tiles * Load::tile_bytes;
  static_assert(C.rows == decode_warp_rows * Team::warps && !C.values_in_keys);

  typename Mma::Queries queries;
  typename Mma::State state;

  struct Shared {
    float* sums;  ///< [warps][16][2]: maximum and sum
    char* stages;
    CERMET_DEVICE explicit Shared(char* smem)
        : sums(reinterpret_cast<float*>(smem)), stages(smem + decode_control_bytes(1, C.rows)) {}
    CERMET_DEVICE char* stage(int i) const { return stages + i * stage_bytes; }
  };

  /// Warps that have the same rows: 1 or 2. The warp's place among them, and the first of its rows.
  static CERMET_DEVICE int groups_of(const QueryTile& tile) { return 2 * tile.rows <= C.rows ? 2 : 1; }
  static CERMET_DEVICE int own_group(int groups) { return static_cast<int>(Team::warp()) / (Team::warps / groups); }
  static CERMET_DEVICE int first_row(int groups) {
    return static_cast<int>(Team::warp()) % (Team::warps / groups) * decode_warp_rows;
  }
  /// The warp's rows of a query tile; may be none.
  static CERMET_DEVICE QueryTile own_rows(const QueryTile& tile) {
    QueryTile own = tile;
    const int before = first_row(groups_of(tile));
    own.first_row += before;
    own.rows = max_of(0, min_of(decode_warp_rows, tile.rows - before));
    return own;
  }

  CERMET_DEVICE void begin_span(const Params& p, const Shared&, const WorkUnit& at) {
    Mma::load_queries(p, own_rows(at.tile), at.head, queries);
    Mma::begin_span(p, at.head, queries, state);
  }

  /// A unit through the online softmax. `page_missing`: it needed a page that does not exist.
  CERMET_DEVICE void consume(const DecodeParams& params, const Shared&, const WorkUnit& at, const char* stage,
                             bool page_missing) {
    const QueryTile own = own_rows(at.tile);
    if (own.rows == 0) return;
    const int groups = groups_of(at.tile);
#pragma unroll 1
    for (int i = own_group(groups); i < Load::tiles; i += groups) {
      const int first = Load::first_key(at, i);
      if (first >= at.tile.end_key) break;
      const char* tile = stage + i * Load::tile_bytes;
      float scores[C.tile_keys / 8][4];  // [16 rows, tile_keys] over the warp
      if constexpr (Mma::is_quantized) Mma::gemm_qk(queries, tile, Load::scales(tile), scores);
      else Mma::gemm_qk(queries, tile, scores);
      Mma::scale_and_mask(params.a, params.scale_log2, own, at.head, first, scores);
      Mma::online_softmax(state, scores);
      if constexpr (Mma::is_quantized)
        Mma::gemm_pv(state, scores, Load::values(tile), Load::scales(tile) + C.tile_keys);
      else Mma::gemm_pv(state, scores, Load::values(tile));
    }
    if (page_missing) state.sum[0] = state.sum[1] = quiet_nan();
  }

  /// Calls sink(r, d, partial) for every four elements of the warp's used rows, r counting those of the block. They
  /// pass through the warp's part of `stage`, which no warp reads any more.
  template <class Sink>
  CERMET_DEVICE void for_quads(const Shared& shared, const QueryTile& tile, char* stage, Sink&& sink) const {
    constexpr int part_bytes = stage_bytes / Team::warps / 16 * 16, part = part_bytes / 4;
    using Passes = OutputPasses<Mma, C.value_size, part_bytes>;
    const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(Team::warp()), groups = groups_of(tile),
              step = Team::warps / groups, before = first_row(groups), rows = own_rows(tile).rows;
    float* outputs = reinterpret_cast<float*>(stage);  // [warps][part]
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      float* to = shared.sums + (warp * decode_warp_rows + lane / 4 + 8 * h) * 2;
      if (lane % 4 == 0) to[0] = state.maximum[h], to[1] = sum;
    }
#pragma unroll
    for (int first = 0; first < C.value_size; first += Passes::columns) {
      if (first > 0) Team::sync();  // another warp may still be reading
      Passes::store(state, first, outputs + warp * part);
      Team::sync();
#pragma unroll 1
      for (int i = lane + 32 * own_group(groups); i < rows * (Passes::columns / 4); i += 32 * groups) {
        const int r = i / (Passes::columns / 4), d = i % (Passes::columns / 4) * 4;
        PartialRow total;
        for (int w = before / decode_warp_rows; w < Team::warps; w += step) {
          const float* sums = shared.sums + (w * decode_warp_rows + r) * 2;
          const float top = fmaxf(total.maximum, sums[0]);
          total.rescale(top);
          total.add(sums[0], sums[1], Passes::load(outputs + w * part, r, d), top);
        }
        sink(before + r, first + d, total);
      }
    }
  }
};

}  // namespace cermet::attention
