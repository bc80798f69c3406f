// embedding: row ids[item] of a table, converted. One work item is one token; an id outside the table gives a row of
// NaN.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/embedding.hpp"

namespace cermet::embedding {

template <Config C>
struct Task {
  using Params = embedding::Params;
  using T = Element<C.table>;
  using Out = Element<C.out>;
  static constexpr int width =
      min_of(per_16_bytes<T>, per_16_bytes<Out>);  // elements of a step, at most 16 bytes on either side

  static CERMET_DEVICE Out convert(T x) {
    if constexpr (C.table == C.out) return x;
    else return from_float<Out>(to_float(x));
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    int64_t offset[2];
    offsets_at(p.tokens, item, offset);
    const int64_t id = load_index(p.ids, p.wide_ids, offset[0]);
    Out* out = static_cast<Out*>(p.out) + offset[1];  // [hidden]
    if (id < 0 || id >= p.vocabulary) {
      for (int i = static_cast<int>(team.rank()); i < C.hidden; i += C.threads) out[i] = from_float<Out>(quiet_nan());
      return;
    }
    const T* row = static_cast<const T*>(p.table) + id * p.table_stride;  // [hidden]
    if (C.hidden % width == 0 && p.vectors) {
#pragma unroll 4
      for (int i = static_cast<int>(team.rank()) * width; i < C.hidden; i += C.threads * width) {
        const auto from = *reinterpret_cast<const Vector<T, width>*>(row + i);
        Vector<Out, width> to;
#pragma unroll
        for (int j = 0; j < width; ++j) to[j] = convert(from[j]);
        *reinterpret_cast<Vector<Out, width>*>(out + i) = to;
      }
    } else {
      for (int i = static_cast<int>(team.rank()); i < C.hidden; i += C.threads) out[i] = convert(row[i]);
    }
  }
};

}  // namespace cermet::embedding
