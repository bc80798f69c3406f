// gather_nd: a word of the result for each thread. A coordinate out of range gives words whose bits are all set.
#pragma once

#include "kernel/cuda/device/movement/coordinates.cuh"
#include "kernel/cuda/device/movement/gather_nd.hpp"

namespace cermet::gather_nd {

struct Task {
  using Params = gather_nd::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t offset[3], slice, place;
    offsets_at(p.axes, position, offset);
    const bool legal = find_slice(p.coordinates, offset[1], slice, place);
    by_word_size(p.word_bytes, [&](auto zero) {
      using Word = decltype(zero);
      static_cast<Word*>(p.y)[offset[2]] = legal ? static_cast<const Word*>(p.x)[offset[0] + slice] : no_word<Word>();
    });
  }
};

}  // namespace cermet::gather_nd
