// where: one of two operands for each element; all three inputs may repeat along axes.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/where.hpp"

namespace cermet::where {

struct Task {
  using Params = where::Params;

  template <class Word, class Team>
  static CERMET_DEVICE void choose(Team team, const Params& p, uint32_t item) {
    move_words<Word, threads>(team, p.axes, p.per_thread, item, static_cast<Word*>(p.y),
                              [&](const int64_t(&offset)[4]) {
                                return p.condition[offset[0]] != 0 ? static_cast<const Word*>(p.x)[offset[1]]
                                                                   : static_cast<const Word*>(p.other)[offset[2]];
                              });
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
