// merge_attention_states: a warp joins the two states of one token and head. A state without weight is not read.
#pragma once

#include "kernel/cuda/device/attention/merge_states.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::merge_states {

template <Config C>
struct Task {
  using Params = merge_states::Params;

  template <DType T>
  static CERMET_DEVICE float term(const State& s, int64_t token, int head, int d, float weight) {
    if (weight == 0.0f) return 0.0f;
    return weight * to_float((static_cast<const Element<T>*>(s.o) + token * s.token_stride + head * s.head_stride)[d]);
  }

  /// The logarithm of a denominator; +inf is also how a state without keys is marked.
  static CERMET_DEVICE float logarithm(const State& s, int64_t token, int head) {
    const float lse = s.lse[head * s.lse_stride + token];
    return lse == infinity() ? -infinity() : lse;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Out = Element<C.out>;
    const int64_t row = static_cast<int64_t>(item) * (C.threads / 32) + team.warp();
    if (row >= p.rows) return;
    const int64_t token = row / p.heads;
    const int head = static_cast<int>(row % p.heads), lane = static_cast<int>(lane_index());
    const float a = logarithm(p.a, token, head), b = logarithm(p.b, token, head);
    const bool empty = a == -infinity() && b == -infinity();
    const float top = b > a || b != b ? b : a;  // NaN where either is
    const float wa = empty ? 0.0f : expf(a - top), wb = empty ? 0.0f : expf(b - top), sum = empty ? 1.0f : wa + wb;
    Out* out = static_cast<Out*>(p.o) + token * p.token_stride + head * p.head_stride;
#pragma unroll 4
    for (int d = lane; d < C.size; d += 32)
      out[d] = from_float<Out>((term<C.a>(p.a, token, head, d, wa) + term<C.b>(p.b, token, head, d, wb)) / sum);
    if (lane == 0) p.lse[head * p.lse_stride + token] = empty ? -infinity() : top + logf(sum);
  }
};

}  // namespace cermet::merge_states
