// Parameters that every attention task shares: queries of a ragged batch against keys in pages or in one list. Strides
// are in elements.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::attention {

/// Keys or values.
struct KeyList {
  const void* data;
  int64_t page_stride, row_stride, head_stride;
  const float* scale;                                              ///< of quantized values; null for none
  int64_t scale_page_stride, scale_row_stride, scale_head_stride;  ///< the first two are 0 where the head has one scale
};

struct Params {
  const void* q;  ///< [tokens, heads, D]
  void* o;        ///< [tokens, heads, Dv]
  float* lse;     ///< [heads, tokens]; null for none
  KeyList k, v;
  const int32_t* block_tables;  ///< [sequences, pages]; null where keys are not paged
  const int32_t* context_lens;  ///< [sequences]; null where keys are not paged
  const void* query_starts;  ///< [sequences + 1] of int32 or int64; null for one query each, or one sequence where keys
                             ///< are not paged
  const void* key_starts;    ///< the same for keys that are not paged
  const float *sinks, *alibi;  ///< [heads]; null for none
  void* partials;              ///< scratch of kernels that split the keys
  int64_t q_token_stride, q_head_stride, o_token_stride, o_head_stride, lse_head_stride, table_stride;
  int32_t tokens, sequences, kv_heads, pages, blocks,
      key_tokens;  ///< blocks: of the cache; key_tokens: of a list that is not paged
  int32_t window;  ///< 0: none
  int32_t least_queries,
      most_queries;      ///< where there are query_starts, sequences with fewer or more are left to another launch
  float scale, softcap;  ///< softcap 0: none
  bool causal, aligned;  ///< aligned: rows of q, k and v may be read 16 bytes at a time where their length allows it
  bool aligned_out;      ///< four elements of the output may be written at a time
  bool wide_queries, wide_keys;  ///< query_starts and key_starts are int64
};

}  // namespace cermet::attention
