// gather: words of the slices that indices name. An index outside [-size, size) gives words whose bits are all set.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/gather.hpp"

namespace cermet::gather {

struct Task {
  using Params = gather::Params;

  template <class Word, class Team>
  static CERMET_DEVICE void move(Team team, const Params& p, uint32_t item) {
    move_words<Word, threads>(
        team, p.axes, p.per_thread, item, static_cast<Word*>(p.y), [&](const int64_t(&offset)[3]) {
          int64_t index = load_index(p.indices, p.wide_indices, offset[1]);
          if (index < 0) index += p.size;
          const bool legal = index >= 0 && index < p.size;
          return legal ? static_cast<const Word*>(p.x)[offset[0] + index * p.slice_stride] : no_word<Word>();
        });
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    by_word_size(p.word_bytes, [&](auto zero) { move<decltype(zero)>(team, p, item); });
  }
};

}  // namespace cermet::gather
