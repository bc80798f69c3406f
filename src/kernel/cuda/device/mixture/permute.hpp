// Parameters of the tasks that sort tokens by expert.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::permute {

inline constexpr int threads = 256, warps = threads / 32;
/// Experts whose counts a warp keeps in shared memory.
inline constexpr int chunk_experts = 1024;
/// Experts that one pass over all ids counts.
inline constexpr int pass_experts = 2048;
/// Choices that a block places at once.
inline constexpr int choices_at_once = 8;
/// Shared memory of the tasks: counts, and sums of the warps.
inline constexpr int direct_shared_bytes = (pass_experts + warps) * 4, count_shared_bytes = warps * chunk_experts * 4,
                     place_shared_bytes = count_shared_bytes + warps * 4;

/// Pairs (t, j) in the order of t and then j: pair t * k + j.
struct Params {
  const void* x;
  const void* ids;
  void* rows;
  int32_t* offsets;  ///< [experts + 1]
  int32_t* row_of;   ///< [tokens, k]
  int32_t* counts;   ///< [chunks, experts]: scratch of the sort in chunks
  int64_t tokens, k, experts;
  int64_t ids_stride, row_of_stride;         ///< of rows, in elements
  int64_t x_stride, rows_stride, row_words;  ///< in words
  int64_t chunk, chunks;                     ///< pairs of a chunk, a multiple of 32, and number of chunks
  uint32_t wide_ids, word_bytes;
};

}  // namespace cermet::permute
