// pad: each word of y comes from x, from a mirrored or repeated one, or is the constant.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/pad.hpp"

namespace cermet::pad {

/// Position in an axis of `size` elements that position `i` relative to its first reads; -1 for the constant.
CERMET_DEVICE int64_t source_of(Mode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == Mode::constant) return -1;
  if (mode == Mode::edge) return i < 0 ? 0 : size - 1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

struct Task {
  using Params = pad::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t from = 0, to = 0;
    bool inside = true;
    for_coordinates(p.axes, position, [&](int a, int64_t at) {
      const int64_t i = source_of(p.mode, at - p.before[a], p.source[a]);
      inside = inside && i >= 0;
      from += i * p.axes.stride[0][a];
      to += at * p.axes.stride[1][a];
    });
    by_word_size(p.word_bytes, [&](auto zero) {
      using Word = decltype(zero);
      static_cast<Word*>(p.y)[to] =
          inside ? static_cast<const Word*>(p.x)[from] : *reinterpret_cast<const Word*>(p.constant);
    });
  }
};

}  // namespace cermet::pad
