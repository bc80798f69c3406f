// What the host and device halves of every attention kernel share: queries of a ragged batch against keys in pages or
// in one list, and sizes of tiles of 16-bit elements in shared memory that ldmatrix reads. Strides are in elements.
#pragma once

#include "kernel/cuda/device/dtype.hpp"

namespace cermet::attention {

/// Keys or values.
struct KeyList {
  const void* data;
  int64_t page_stride, row_stride, head_stride;
  const float* scale;                                              ///< of quantized values; null for none
  int64_t scale_page_stride, scale_row_stride, scale_head_stride;  ///< the first two are 0 where the head has one scale
  int64_t column_stride = 0;  ///< of values in columns, from one to the next; row_stride is that of 16 tokens then
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
      key_tokens;        ///< blocks: of the cache; key_tokens: of a list that is not paged
  int32_t window;        ///< keys that a query sees up to its own position, with that; 0: no windows
  int32_t window_after;  ///< with a window: keys that it sees from its own position on, with that
  int32_t least_queries,
      most_queries;      ///< where there are query_starts, sequences with fewer or more are left to another launch
  float scale, softcap;  ///< softcap 0: none
  bool causal, aligned;  ///< aligned: rows of q, k and v, or columns of v, may be read 16 bytes at a time where their
                         ///< length allows it
  bool aligned_out;      ///< four elements of the output may be written at a time
  bool zero_rows;        ///< a query whose scores are all -inf gives zeros
  bool wide_queries, wide_keys;  ///< query_starts and key_starts are int64
};

/// Elements of a swizzled piece of a row in shared memory: pieces of 128 or 64 bytes lie one after the other, each with
/// all rows of the tile. 0 where the row does not divide into such pieces: then rows are padded to an odd number of
/// 16-byte chunks. Either way the 8 rows of a matrix that ldmatrix reads lie in different banks.
constexpr int tile_piece(int size) { return size % 64 == 0 ? 64 : size % 32 == 0 ? 32 : 0; }
/// Bytes of `rows` rows of `size` 16-bit elements.
constexpr int tile_bytes(int size, int rows) {
  return rows * (tile_piece(size) != 0 ? 2 * size : 16 * (2 * ((size + 15) / 16) + 1));
}

}  // namespace cermet::attention
