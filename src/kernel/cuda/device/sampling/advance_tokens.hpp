// Parameters of the advance_tokens task.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::advance_tokens {

inline constexpr int threads = 256;

/// Strides in elements.
struct Params {
  const int32_t* chosen;
  int32_t *ids, *positions, *slots, *context_lens;
  const int32_t* block_tables;
  int64_t* draws;
  int32_t *made, *count;
  int64_t chosen_stride, ids_stride, positions_stride, slots_stride, lens_stride, table_stride, page_stride,
      draws_stride, made_stride, column_stride;
  int64_t made_rows;
  uint32_t sequences, pages, block_size;
};

}  // namespace cermet::advance_tokens
