// embedding: row ids[item] of a table, converted. One work item is one token; an id outside the table gives a row of NaN.
#pragma once

#include "kernel/cuda/device/movement/embedding.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::embedding {

struct Config {
  int hidden;
  DType ids, table, out;
  int threads;
};

template <Config C>
struct Task {
  using Params = embedding::Params;
  using T = Element<C.table>;
  using Out = Element<C.out>;

  static __device__ void run(const Params& p, uint32_t item, char*) {
    const int64_t id = static_cast<const Element<C.ids>*>(p.ids)[item];
    const bool legal = id >= 0 && id < p.vocabulary;
    const T* row = static_cast<const T*>(p.table) + (legal ? id : 0) * p.table_stride;  // [hidden]
    Out* out = static_cast<Out*>(p.out) + item * p.out_stride;                          // [hidden]
    for (int i = static_cast<int>(threadIdx.x); i < C.hidden; i += C.threads) out[i] = from_float<Out>(legal ? to_float(row[i]) : quiet_nan());
  }
};

}  // namespace cermet::embedding
