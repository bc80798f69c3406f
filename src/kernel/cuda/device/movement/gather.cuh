// gather: words of the slices that indices name. An index outside [-size, size) gives words whose bits are all set.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/gather.hpp"

namespace cermet::gather {

struct Task {
  using Params = gather::Params;

  template <class Word, class Team>
  static __device__ __forceinline__ void move(Team team, const Params& p, uint32_t item) {
    constexpr int most = 4;
    const int64_t first = static_cast<int64_t>(item) * (threads * p.per_thread) + team.rank();
    Word word[most];
    int64_t target[most];
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const int64_t position = first + i * threads;
      target[i] = -1;
      if (i >= p.per_thread || position >= p.axes.count) continue;
      int64_t offset[3];
      offsets_at(p.axes, position, offset);
      int64_t index = load_index(p.indices, p.wide_indices, offset[1]);
      if (index < 0) index += p.size;
      const bool legal = index >= 0 && index < p.size;
      word[i] = legal ? static_cast<const Word*>(p.x)[offset[0] + index * p.slice_stride] : no_word<Word>();
      target[i] = offset[2];
    }
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (i < p.per_thread && first + i * threads < p.axes.count) static_cast<Word*>(p.y)[target[i]] = word[i];
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    by_word_size(p.word_bytes, [&](auto zero) { move<decltype(zero)>(team, p, item); });
  }
};

}  // namespace cermet::gather
