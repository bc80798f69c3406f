// One warp's way through its tiles of keys and values: from the pages to shared memory (decode_load.cuh), and through
// the online softmax (decode_mma.cuh).
#pragma once

#include "kernel/cuda/device/attention/decode_load.cuh"
#include "kernel/cuda/device/attention/decode_mma.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeMainloop {
  using Load = KvLoader<C, Team>;
  using Mma = DecodeMma<C>;
  static constexpr int warps = C.warps, threads = 32 * warps, stages = C.stages, keys = C.tile_keys;
  static constexpr int stage_bytes = decode_stage_bytes(C.head_size, C.value_size, keys, Load::bytes);

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

  /// One tile through the online softmax. `page_missing`: the tile needed a page that does not exist.
  static CERMET_DEVICE void consume(const DecodeParams& params, const WorkUnit& at,
                                    const typename Mma::Queries& queries, typename Mma::State& state, const char* stage,
                                    bool page_missing) {
    const attention::Params& p = params.a;
    const int first = Load::first_key(at);
    if (first >= at.tile.end_key) return;
    const char* values = stage + Load::K::bytes;
    float scores[keys / 8][4];  // [16 rows, tile_keys] over the warp
    [[maybe_unused]] const float* scales = reinterpret_cast<const float*>(values + Load::V::bytes);
    if constexpr (Mma::is_quantized) Mma::gemm_qk(queries, stage, scales, scores);
    else Mma::gemm_qk(queries, stage, scores);
    Mma::scale_and_mask(p, params.scale_log2, at.tile, at.head, first, scores);
    Mma::online_softmax(state, scores);
    if constexpr (Mma::is_quantized) Mma::gemm_pv(state, scores, values, scales + keys);
    else Mma::gemm_pv(state, scores, values);
    if (page_missing) state.sum[0] = state.sum[Mma::halves - 1] = quiet_nan();
  }
};

}  // namespace cermet::attention
