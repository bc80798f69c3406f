// Warps of a block that have 16 rows each, of all columns.
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
    float* sums;  ///< [rows][2]: maximum and sum
    char* stages;
    CERMET_DEVICE explicit Shared(char* smem)
        : sums(reinterpret_cast<float*>(smem)), stages(smem + decode_control_bytes(1, C.rows)) {}
    CERMET_DEVICE char* stage(int i) const { return stages + i * stage_bytes; }
  };

  /// The warp's rows of a query tile; may be none.
  static CERMET_DEVICE QueryTile own_rows(const QueryTile& tile) {
    QueryTile own = tile;
    const int before = static_cast<int>(Team::warp()) * decode_warp_rows;
    own.first_row += before;
    own.rows = max_of(0, min_of(decode_warp_rows, tile.rows - before));
    return own;
  }

  CERMET_DEVICE void begin_span(const Params& p, const Shared&, const WorkUnit& at) {
    Mma::load_queries(p, own_rows(at.tile), at.head, queries);
    state.clear();
  }

  /// A unit through the online softmax. `page_missing`: it needed a page that does not exist.
  CERMET_DEVICE void consume(const DecodeParams& params, const Shared&, const WorkUnit& at, const char* stage,
                             bool page_missing) {
    const QueryTile own = own_rows(at.tile);
    if (own.rows == 0) return;
#pragma unroll 1
    for (int i = 0; i < Load::tiles; ++i) {
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
    const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(Team::warp());
    float* sums = shared.sums + warp * decode_warp_rows * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int r = lane / 4 + 8 * h;
      if (lane % 4 == 0) sums[2 * r] = state.maximum[h], sums[2 * r + 1] = sum;
    }
    constexpr int part_bytes = stage_bytes / Team::warps / 16 * 16;
    rows_through_shared<Mma, C.value_size, part_bytes>(
        state, own_rows(tile).rows, reinterpret_cast<float*>(stage + warp * part_bytes),
        [&](int r, int d, const Vector<float, 4>& output) {
          sink(warp * decode_warp_rows + r, d,
               PartialRow{sums[2 * r], sums[2 * r + 1], {output[0], output[1], output[2], output[3]}});
        });
  }
};

}  // namespace cermet::attention
