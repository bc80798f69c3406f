// where: one of two operands for each element; all three inputs may repeat along axes.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/where.hpp"

namespace cermet::where {

struct Task {
  using Params = where::Params;

  template <class Word, class Team>
  static __device__ __forceinline__ void choose(Team team, const Params& p, uint32_t item) {
    constexpr int most = 4;
    const int64_t first = static_cast<int64_t>(item) * (threads * p.per_thread) + team.rank();
    Word word[most];
    int64_t target[most];
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const int64_t position = first + i * threads;
      target[i] = -1;
      if (i >= p.per_thread || position >= p.axes.count) continue;
      int64_t offset[4];
      offsets_at(p.axes, position, offset);
      const bool take = p.condition[offset[0]] != 0;
      word[i] = take ? static_cast<const Word*>(p.x)[offset[1]] : static_cast<const Word*>(p.other)[offset[2]];
      target[i] = offset[3];
    }
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (i < p.per_thread && first + i * threads < p.axes.count) static_cast<Word*>(p.y)[target[i]] = word[i];
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    switch (p.word_bytes) {
      case 1: return choose<uint8_t>(team, p, item);
      case 2: return choose<uint16_t>(team, p, item);
      case 4: return choose<uint32_t>(team, p, item);
      default: return choose<uint64_t>(team, p, item);
    }
  }
};

}  // namespace cermet::where
