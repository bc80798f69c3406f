// The rows and the experts of a token's choices (combine.cuh).
#pragma once

#include "kernel/cuda/device/gemv/config.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemv {

template <Config C>
struct CombineChoices {
  /// Whether what the launch before publishes may be read.
  static constexpr bool reads_early = C.ids == DType::i32 && C.offsets == DType::i32;

  /// An index that the launch before may have stored while this one began.
  template <class T>
  static CERMET_DEVICE int64_t load_index(const T* from) {
    if constexpr (reads_early) return ptx::load_l2(from);
    else return *from;
  }
  static CERMET_DEVICE int row_of(const Params& p, int choice) {
    const int64_t row = load_index(static_cast<const Element<C.ids>*>(p.row_of_choice) + choice);
    return row >= 0 && row < p.rows ? static_cast<int>(row) : -1;
  }
  /// The experts of `Count` rows, -1 where there is none. All lanes of a warp call.
  template <int Count>
  static CERMET_DEVICE void find_groups(const Params& p, const int (&row)[Count], int (&group)[Count]) {
    const auto* const offsets = static_cast<const Element<C.offsets>*>(p.offsets);
#pragma unroll
    for (int j = 0; j < Count; ++j) group[j] = -1;
#pragma unroll 4
    for (int e = static_cast<int>(lane_index()); e < p.groups; e += 32) {
      const int64_t begin = load_index(offsets + e), end = load_index(offsets + e + 1);
#pragma unroll
      for (int j = 0; j < Count; ++j)
        if (row[j] >= begin && row[j] < end) group[j] = e;
    }
#pragma unroll
    for (int j = 0; j < Count; ++j) group[j] = __reduce_max_sync(0xffffffffu, group[j]);
  }
};

}  // namespace cermet::gemv
