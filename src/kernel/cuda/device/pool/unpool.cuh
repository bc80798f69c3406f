// max_unpool: a thread for each zero, then one for each element. col2im: a thread for each result, which gathers what
// lies on it.
#pragma once

#include "kernel/cuda/device/image/positions.cuh"
#include "kernel/cuda/device/pool/unpool.hpp"

namespace cermet::unpool {

struct Task {
  using Params = unpool::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position from = position_of(p.order, index);
    int64_t to = 0, source = 0;
    if (p.zeros) {
      to = offset_of(p.to, from.n, from.c, from.at);
    } else {
      const int64_t size = static_cast<int64_t>(p.covered[0]) * p.covered[1] * p.covered[2];
      const int64_t place =
          p.indices[offset_of(p.places, from.n, from.c, from.at)] - (from.n * p.channels + from.c) * size;
      if (place < 0 || place >= size) return;
      const int32_t plane = p.covered[1] * p.covered[2], in_plane = static_cast<int32_t>(place % plane);
      const int32_t at[3] = {static_cast<int32_t>(place / plane), in_plane / p.covered[2], in_plane % p.covered[2]};
      to = offset_of(p.to, from.n, from.c, at);
      source = offset_of(p.from, from.n, from.c, from.at);
    }
    by_word_size(p.word_bytes, [&](auto zero) {
      using Word = decltype(zero);
      static_cast<Word*>(p.y)[to] = p.zeros ? zero : static_cast<const Word*>(p.x)[source];
    });
  }
};

template <DType Type>
struct BlockTask {
  using Params = BlockParams;
  using T = Element<Type>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position to = position_of(p.order, index);
    const int64_t taps = static_cast<int64_t>(p.kernel[0]) * p.kernel[1] * p.kernel[2];
    const T* x = static_cast<const T*>(p.x) + to.n * p.batch_stride + to.c * taps * p.row_stride;
    float sum = 0;
    for (int32_t i = 0; i < p.kernel[0]; ++i) {
      const int32_t d = to.at[0] + p.before[0] - i * p.dilation[0];
      if (d < 0 || d % p.stride[0] != 0 || d / p.stride[0] >= p.count[0]) continue;
      for (int32_t j = 0; j < p.kernel[1]; ++j) {
        const int32_t h = to.at[1] + p.before[1] - j * p.dilation[1];
        if (h < 0 || h % p.stride[1] != 0 || h / p.stride[1] >= p.count[1]) continue;
        for (int32_t k = 0; k < p.kernel[2]; ++k) {
          const int32_t w = to.at[2] + p.before[2] - k * p.dilation[2];
          if (w < 0 || w % p.stride[2] != 0 || w / p.stride[2] >= p.count[2]) continue;
          const int64_t tap = (static_cast<int64_t>(i) * p.kernel[1] + j) * p.kernel[2] + k;
          const int64_t block =
              (static_cast<int64_t>(d / p.stride[0]) * p.count[1] + h / p.stride[1]) * p.count[2] + w / p.stride[2];
          sum += to_float(x[tap * p.row_stride + block]);
        }
      }
    }
    static_cast<T*>(p.y)[offset_of(p.to, to.n, to.c, to.at)] = from_float<T>(sum);
  }
};

}  // namespace cermet::unpool
