// Parameters of the tasks that sort tokens by expert.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::permute {

inline constexpr int threads = 256, warps = threads / 32;
/// Experts whose counts a warp keeps in shared memory.
inline constexpr int chunk_experts = 1024;
/// Experts that one pass over all ids counts.
inline constexpr int pass_experts = 2048;
/// Groups of pairs that a block of few pairs keeps in shared memory.
inline constexpr int groups_held = 4096;
/// Ids and words of 16 bytes that a thread asks for at once, and choices that Copy places at once.
inline constexpr int ids_at_once = 4, words_held = 2, choices_at_once = 8;
/// Group of a pair with no expert: no group comes after it.
inline constexpr int32_t no_group = 1 << 30;
/// Shared memory of the tasks: counts, and sums of the warps.
inline constexpr int direct_shared_bytes = (groups_held + warps) * 4, count_shared_bytes = warps * chunk_experts * 4,
                     row_indices_shared_bytes = count_shared_bytes + warps * 4;

/// Pairs (t, j) in the order of t and then j: pair t * k + j.
struct Params {
  const void* x;
  const void* ids;
  const float* scales;  ///< [tokens]; null where there are none
  void* rows;
  int32_t* offsets;                          ///< [experts + 1]
  int32_t* row_of;                           ///< [tokens, k]
  float* row_scales;                         ///< [tokens * k]
  int32_t* counts;                           ///< [chunks, experts]: scratch of the sort in chunks
  int64_t tokens, k, experts;                ///< experts: groups, of which one may have the pairs of other experts
  int64_t ids_stride, row_of_stride;         ///< of rows, in elements
  int64_t x_stride, rows_stride, row_words;  ///< in words
  int64_t chunk, chunks;                     ///< pairs of a chunk, a multiple of 32, and number of chunks
  int32_t slice_words;                       ///< of few pairs: words of a row that a block copies
  uint32_t slices_shift, lanes_shift;  ///< logarithms: of a row's slices, and of the threads, 32 to all, that copy a
                                       ///< slice to the same place
  Divisor by_k;
  int32_t first;   ///< id of group 0's expert
  int32_t own;     ///< groups of one expert
  int32_t others;  ///< group of all other ids, or no_group
  uint32_t wide_ids, word_bytes;
};

}  // namespace cermet::permute
