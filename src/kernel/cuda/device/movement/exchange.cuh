// all_to_all with counts, all ranks in one memory: each row of the result finds its sender from the counts, which only
// the device knows.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/exchange.hpp"

namespace cermet::exchange {

/// One work item: row `item % rows` of the result of rank `item / rows`. Counts that do not fit give zeros, never an
/// address outside x.
struct Task {
  using Params = exchange::Params;

  static CERMET_DEVICE int64_t count(const Params& p, int64_t from, int64_t to) {
    return load_index(p.counts, p.wide_counts, from * p.counts_strides[0] + to * p.counts_strides[1]);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t to = item / p.rows, row = item - to * p.rows;
    int64_t sender = 0, before = 0;  // rows that `to` has from ranks before the sender
    while (sender < p.ranks && row >= before + count(p, sender, to)) before += count(p, sender++, to);
    int64_t source = row - before;
    for (int64_t r = 0; sender < p.ranks && r < to; ++r) source += count(p, sender, r);
    const bool sent = sender < p.ranks && source >= 0 && source < p.rows;
    by_word_size(p.word_bytes, [&](auto zero) {
      using Word = decltype(zero);
      const Word* from = static_cast<const Word*>(p.x) + (sent ? sender * p.x_strides[0] + source * p.x_strides[1] : 0);
      Word* target = static_cast<Word*>(p.y) + to * p.y_strides[0] + row * p.y_strides[1];
      for (int64_t w = team.rank(); w < p.row.count; w += threads) {
        int64_t offset[2];
        offsets_at(p.row, w, offset);
        target[offset[1]] = sent ? from[offset[0]] : zero;
      }
    });
  }
};

}  // namespace cermet::exchange
