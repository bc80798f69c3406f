// The products of a tile of keys: scores from shared memory, and results of weights in registers.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma.hpp"
#include "kernel/cuda/device/attention/tile_rows.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <TmaPrefillConfig C>
struct PrefillProducts {
  using T = Element<C.kv>;
  static constexpr int keys = C.keys, rows = C.rows(), columns = C.value_columns();
  static constexpr int step_keys = C.columns ? 32 : 16;  ///< of a product with values
  static constexpr int steps = keys / step_keys;
  static constexpr int key_steps = (C.head_size * C.element_bytes() + 31) / 32;

  /// Weights as fragments of the left operand.
  using Weights = uint32_t[C.parts][steps][4];

  /// Starts scores = queries * keys.
  static CERMET_DEVICE void multiply_keys(const char* queries, const char* tile, float (&scores)[keys / 2]) {
    const uint64_t a = ptx::wgmma_descriptor(queries), b = ptx::wgmma_descriptor(tile);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < key_steps; ++i)
      ptx::Wgmma<keys, T, T>::multiply(scores, a + i / 4 * (rows * 128 / 16) + i % 4 * 2,
                                       b + i / 4 * (keys * 128 / 16) + i % 4 * 2, i > 0);
    ptx::wgmma_commit();
  }

  /// Starts output += weights * values.
  static CERMET_DEVICE void multiply_values(const Weights& weights, const char* tile, float (&output)[columns / 2]) {
    constexpr int column_bytes = 16 * C.value_size, step = C.columns ? column_bytes / 8 : 128;
    const uint64_t b =
        C.columns ? ptx::wgmma_descriptor_plain(tile, column_bytes) : ptx::wgmma_descriptor_columns(tile, keys * 128);
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < C.parts; ++part)
#pragma unroll
      for (int i = 0; i < steps; ++i) ptx::WgmmaRows<columns, T>::multiply(output, weights[part][i], b + step * i);
    ptx::wgmma_commit();
  }

  static CERMET_DEVICE void pack_weights(const float (&scores)[keys / 2], Weights& weights) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (C.columns) {
          // Row i % 2, and 16 keys whose places in a column are four of a thread's side by side.
          const int at = 8 * (2 * step + i / 2) + 2 * (i % 2);
          weights[0][step][i] = pack(scores[at], scores[at + 1], scores[at + 4], scores[at + 5], T{});
        } else {
          const float a = scores[8 * step + 2 * i], b = scores[8 * step + 2 * i + 1];
          weights[0][step][i] = pack(a, b, T{});
          if constexpr (C.parts == 2) weights[1][step][i] = pack_rest<T>(a, b, weights[0][step][i]);
        }
      }
  }

  template <int size>
  static CERMET_DEVICE void touch(float (&list)[size]) {
#pragma unroll
    for (int i = 0; i < size; ++i) ptx::wgmma_touch(list[i]);
  }
  /// Products have read the weights.
  static CERMET_DEVICE void touch(Weights& weights) {
#pragma unroll
    for (int i = 0; i < C.parts * steps * 4; ++i)
      asm volatile("" : "+r"(weights[i / (steps * 4)][i / 4 % steps][i % 4])::"memory");
  }
};

}  // namespace cermet::attention
#endif
