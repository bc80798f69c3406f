// gather_elements: an element for each thread. An index outside [-size, size) gives an element whose bits are all set.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/gather_elements.hpp"

namespace cermet::gather_elements {

struct Task {
  using Params = gather_elements::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t offset[3];
    offsets_at(p.axes, position, offset);
    int64_t index = load_index(p.indices, p.wide_indices, offset[1]);
    if (index < 0) index += p.size;
    const bool legal = index >= 0 && index < p.size;
    by_word_size(p.element_bytes, [&](auto zero) {
      using Word = decltype(zero);
      static_cast<Word*>(p.y)[offset[2]] =
          legal ? static_cast<const Word*>(p.x)[offset[0] + index * p.stride] : no_word<Word>();
    });
  }
};

}  // namespace cermet::gather_elements
