// Which results an item of a GEMV computes, and the rows of weights that they need.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemv/config.cuh"
#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/gemv/route.cuh"

namespace cermet::gemv {

template <Config C>
struct RowWork {
  static constexpr int element = static_cast<int>(sizeof(Element<C.w>));

  /// Columns [first, end) of row `row`, whose weight is that of `group`.
  struct Segment {
    int row = 0, group = 0, first = 0, end = 0;
    int x_row = 0;  ///< the row of x that it multiplies
  };

  static __device__ __forceinline__ int64_t begin_of(const Params& p, uint32_t item) {
    return static_cast<int64_t>(p.rows) * p.columns * item / static_cast<uint32_t>(p.shares);
  }
  /// Calls body(segment) for the results [begin, end) in row-major order. Whole warps call.
  template <class Body>
  static __device__ __forceinline__ void for_segments(const Params& p, uint32_t item, Body&& body) {
    const int64_t end = begin_of(p, item + 1);
    [[maybe_unused]] const Route<C> route(p);
    for (int64_t at = begin_of(p, item); at < end;) {
      Segment s;
      s.row = static_cast<int>(at / p.columns);
      s.first = static_cast<int>(at % p.columns);
      s.end = static_cast<int>(min_of<int64_t>(p.columns, s.first + (end - at)));
      at += s.end - s.first;
      s.x_row = s.row;
      if constexpr (C.routed) {
        if (!route.find(s.row, p.choices, s.group, s.x_row)) continue;
      } else if constexpr (C.grouped) {
        const auto found = gemm::find_group(static_cast<const Element<C.offsets>*>(p.offsets), p.groups, p.rows, 1, s.row);
        if (found.group < 0) continue;
        s.group = found.group;
        s.row = s.x_row = found.row;
      }
      body(s);
    }
  }

  static __device__ __forceinline__ bool starts_early(const Params& p) { return !C.grouped && p.constant != 0; }
  static __device__ __forceinline__ Segment first_segment(const Params& p, uint32_t item) {
    const int64_t begin = begin_of(p, item), end = begin_of(p, item + 1);
    if (begin >= end) return {};
    const int first = static_cast<int>(begin % p.columns);
    const int row = static_cast<int>(begin / p.columns);
    return {row, 0, first, static_cast<int>(min_of<int64_t>(p.columns, first + (end - begin))), row};
  }

#if CERMET_ARCH >= 900
  static __device__ __forceinline__ WeightRows weights_of(const Params& p, const Segment& s) {
    const int64_t group = s.group * p.w_group_stride * element;
    return {{static_cast<const char*>(p.w) + group, static_cast<const char*>(p.w_up) + group}, {p.w_stride * element, p.w_up_stride * element}, s.first, s.end};
  }
#endif
};

}  // namespace cermet::gemv
