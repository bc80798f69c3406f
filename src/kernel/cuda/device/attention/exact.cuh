// What the tensor cores make NaN of although the operator does not: an infinite value times the second part of a
// weight, which may be 0, and a value that a row does not see times 0. Such elements, which are rare, are recomputed
// one by one.
#pragma once

#include "kernel/cuda/device/attention/queries.cuh"

namespace cermet::attention {

/// Types and sizes of a problem; block: tokens of a page, 0 where keys are not paged.
struct ExactConfig {
  int head_size, block;
  DType q, kv, out;
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
    const T* k = vector(p.k);
    float dot = 0.0f;
#pragma unroll 1
    for (int i = 0; i < C.head_size; ++i) dot = fmaf(to_float(q[i]), to_float(k[i]), dot);
    const float weight =
        expf(operands.change(score_of(p, dot, slope, row.position - key), row.head, row.token, key) - base);
    if (Operands::skips_zeros && weight == 0.0f) continue;
    sum = fmaf(weight, to_float(vector(p.v)[d]), sum);
  }
  o[d] = from_float<Element<C.out>>(sum * row.factor);
}

}  // namespace cermet::attention
