// Which queries a work item has, which keys they see, and scores and results as the operator defines them.
#pragma once

#include "format/value_columns.hpp"
#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::attention {

/// A sequence: its queries [begin, end) among the tokens, and `keys` keys from `key_begin` on (0 where they are paged).
struct Sequence {
  int index, begin, end, keys;
  int64_t key_begin;
};

CERMET_DEVICE int bound_of(const void* bounds, int i, bool wide, int limit) {
  if (wide)
    return static_cast<int>(
        min_of(max_of(static_cast<const int64_t*>(bounds)[i], int64_t{0}), static_cast<int64_t>(limit)));
  return min_of(max_of(static_cast<const int32_t*>(bounds)[i], 0), limit);
}

/// Number of queries of sequence b; bounds that make no sense give 0, and so does a sequence that another launch has.
CERMET_DEVICE int query_count(const Params& p, int b, bool paged) {
  if (!p.query_starts) return paged ? 1 : p.tokens;
  const bool wide = !paged && p.wide_queries;
  const int count =
      max_of(0, bound_of(p.query_starts, b + 1, wide, p.tokens) - bound_of(p.query_starts, b, wide, p.tokens));
  return static_cast<uint32_t>(count - p.least_queries) <= static_cast<uint32_t>(p.most_queries - p.least_queries)
             ? count
             : 0;
}

/// `block`: tokens of a page; 0 where keys are not paged.
CERMET_DEVICE Sequence sequence_of(const Params& p, int b, int block) {
  Sequence s{b, b, b + 1, 0, 0};
  if (block == 0) s = {b, 0, p.tokens, p.key_tokens, 0};
  if (p.query_starts) {
    s.begin = bound_of(p.query_starts, b, block == 0 && p.wide_queries, p.tokens);
    s.end = s.begin + query_count(p, b, block != 0);
  }
  if (block != 0) {
    s.keys = min_of(max_of(p.context_lens[b], 0), p.pages * block);
  } else if (p.key_starts) {
    s.key_begin = bound_of(p.key_starts, b, p.wide_keys, p.key_tokens);
    s.keys = max_of(0, bound_of(p.key_starts, b + 1, p.wide_keys, p.key_tokens) - static_cast<int>(s.key_begin));
  }
  return s;
}

struct TilePlace {
  int sequence, index;  ///< tile within the sequence; sequence -1: there is no such tile
};

/// Place of a tile when every sequence's rows (queries times `group`) are cut into tiles of `rows`. Called by whole
/// warps.
CERMET_DEVICE TilePlace place_of(const Params& p, int tile, int group, int rows, bool paged) {
  if (!p.query_starts) {
    const int each = ((paged ? 1 : p.tokens) * group + rows - 1) / rows;
    if (each == 0 || tile / each >= p.sequences) return {-1, 0};
    return {tile / each, tile % each};
  }
  const int lane = static_cast<int>(lane_index());
  for (int first = 0; first < p.sequences; first += 32) {
    const int b = first + lane;
    const int count = b < p.sequences ? (query_count(p, b, paged) * group + rows - 1) / rows : 0;
    int end = count;  // tiles up to and with this lane's sequence
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int below = __shfl_up_sync(0xffffffffu, end, offset);
      if (lane >= offset) end += below;
    }
    const uint32_t holds = __ballot_sync(0xffffffffu, tile < end);
    if (holds != 0) {
      const int owner = __ffs(static_cast<int>(holds)) - 1;
      return {first + owner, tile - __shfl_sync(0xffffffffu, end - count, owner)};
    }
    tile -= __shfl_sync(0xffffffffu, end, 31);
  }
  return {-1, 0};
}

/// Keys [first, last) that a query sees.
struct Visible {
  int first, last;
};

CERMET_DEVICE Visible visible_keys(const Params& p, int position, int keys) {
  Visible range{0, keys};
  if (p.window > 0) range = {max_of(0, position - p.window + 1), min_of(keys, max_of(position + p.window_after, 0))};
  if (p.causal) range.last = min_of(range.last, position + 1);
  return range;
}

/// A score as the operator defines it from the dot product of query and key.
CERMET_DEVICE float score_of(const Params& p, float dot, float slope, int distance) {
  float score = dot * p.scale;
  if (p.softcap > 0.0f) score = p.softcap * tanhf(score / p.softcap);
  if (slope != 0.0f) score -= slope * static_cast<float>(distance < 0 ? -distance : distance);
  return score;
}

/// What operands do to scores where there are none.
struct PlainScores {
  static constexpr bool changes = false;  ///< whether they do anything
  static constexpr bool skips_zeros =
      false;       ///< whether a value whose weight is 0 stays out of the sum even if it is not finite
  struct Pair {};  ///< what they do to the scores of two neighbouring keys
  static CERMET_DEVICE float change(float score, const Pair&, int) { return score; }
  static CERMET_DEVICE float change(float score, int, int, int) { return score; }
};

/// Maximum and denominator of a row with the sink of its head, if any, and what the weighted sum of values is to be
/// multiplied with.
struct Finish {
  float factor, lse;
};

/// Whether a row has zeros in place of NaN, by the sum of its weights.
CERMET_DEVICE bool is_empty(const Params& p, float sum) { return p.zero_rows && sum == 0.0f; }

/// `seen`: whether the row sees any key. `maximum` is -infinity where no finite score was met, and `sum` is relative to
/// it (to 0 in that case).
CERMET_DEVICE Finish finish_row(const float* sinks, int head, bool seen, float maximum, float sum) {
  const float sink = sinks ? sinks[head] : -infinity();
  const bool poisoned = sink != sink;
  if (!seen && !poisoned) return {0.0f, sink};
  const float top = sink > maximum ? sink : maximum;
  const float base = top == -infinity() ? 0.0f : top, shrink = maximum == -infinity() ? 1.0f : expf(maximum - base);
  float denominator = sum * shrink;
  if (sink != -infinity()) denominator += expf(sink - base);
  return {shrink / denominator, denominator == 0.0f ? -infinity() : base + logf(denominator)};
}

// What the tensor cores make NaN of although the operator does not: an infinite value times the second part of a
// weight, which may be 0, and a value that a row does not see times 0. Such elements, which are rare, are recomputed
// one by one.

/// Element d of the value of a page's token `row`, from the first column of the page and head on.
template <class T>
CERMET_DEVICE T value_in_columns(const T* first, const KeyList& list, int row, int d) {
  return first[row / format::value_column * list.row_stride + d * list.column_stride +
               format::value_place(row % format::value_column)];
}

/// Types and sizes of a problem; block: tokens of a page, 0 where keys are not paged.
struct ExactConfig {
  int head_size, block;
  DType q, kv, out;
  bool columns = false;  ///< values are in columns
};

/// A row of the result: a query and head.
struct ExactRow {
  int sequence, token, head, kv_head, position;
  int64_t key_begin;      ///< of the sequence where keys are not paged
  int keys;               ///< of the sequence; those that the row cannot see may be left out
  float maximum, factor;  ///< of its scores; what the sum of values weighted relative to the maximum is multiplied with
};

/// Recomputes element d, which was stored as o[d], if it is NaN.
template <ExactConfig C, class Operands = PlainScores>
CERMET_DEVICE void repair(const Params& p, const ExactRow& row, Element<C.out>* o, int d,
                          const Operands& operands = {}) {
  const float found = to_float(o[d]);
  if (found == found) return;
  using T = Element<C.kv>;
  const auto* q = static_cast<const Element<C.q>*>(p.q) + row.token * p.q_token_stride + row.head * p.q_head_stride;
  const Visible seen = visible_keys(p, row.position, row.keys);
  const float slope = p.alibi ? p.alibi[row.head] : 0.0f, base = row.maximum == -infinity() ? 0.0f : row.maximum;
  float sum = 0.0f;
#pragma unroll 1
  for (int key = seen.first; key < seen.last && sum == sum; ++key) {
    int64_t page = 0, at = row.key_begin + key;
    if constexpr (C.block != 0) {
      page = p.block_tables[row.sequence * p.table_stride + key / C.block];
      at = key % C.block;
      if (page < 0 || page >= p.blocks) return;
    }
    const auto vector = [&](const KeyList& list) {
      return static_cast<const T*>(list.data) + page * list.page_stride + at * list.row_stride +
             row.kv_head * list.head_stride;
    };
    const auto scaled = [&](float x, const KeyList& list) {
      if (sizeof(T) > 1 || !list.scale) return x;
      return x * list.scale[page * list.scale_page_stride + at * list.scale_row_stride +
                            row.kv_head * list.scale_head_stride];
    };
    const T* k = vector(p.k);
    float dot = 0.0f;
#pragma unroll 1
    for (int i = 0; i < C.head_size; ++i) dot = fmaf(to_float(q[i]), to_float(k[i]), dot);
    dot = scaled(dot, p.k);
    const float weight =
        expf(operands.change(score_of(p, dot, slope, row.position - key), row.head, row.token, key) - base);
    if (Operands::skips_zeros && weight == 0.0f) continue;
    T value;
    if constexpr (C.columns)
      value = value_in_columns(static_cast<const T*>(p.v.data) + page * p.v.page_stride + row.kv_head * p.v.head_stride,
                               p.v, static_cast<int>(at), d);
    else value = vector(p.v)[d];
    sum = fmaf(weight, scaled(to_float(value), p.v), sum);
  }
  o[d] = from_float<Element<C.out>>(sum * row.factor);
}

}  // namespace cermet::attention
