// The rows of a grouped product that no weight multiplies: what follows the product, of zeros.
#pragma once

#include "kernel/cuda/device/gemm/unweighted_rows.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/store.cuh"

namespace cermet::gemm {

/// E: the epilogue, see tile/epilogue.cuh; its one input is the product. Items count the rows from the first that has
/// no weight on; those past the last row do nothing.
template <DType Offsets, class E>
struct UnweightedRows {
  using Params = UnweightedParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const auto begin = static_cast<int64_t>(static_cast<const Element<Offsets>*>(p.offsets)[p.groups]);
    const int64_t at = static_cast<int64_t>(item) * unweighted_threads + team.rank();
    const int runs = (p.columns + unweighted_run - 1) / unweighted_run;
    const int64_t row = max_of<int64_t>(begin, 0) + at / runs;
    if (row >= p.rows) return;
    const float zeros[unweighted_run] = {};
    epilogue::store_results<E>(p.extra, p.to, static_cast<int>(row), static_cast<int>(at % runs) * unweighted_run,
                               p.columns, p.vectors, zeros);
  }
};

}  // namespace cermet::gemm
