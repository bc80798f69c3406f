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

  /// Where the results of an item begin, in row-major order, and how many they are.
  struct Start {
    int row = 0, column = 0, count = 0;
    CERMET_DEVICE bool is_first() const { return row == 0 && column == 0; }
    /// Keeps the compiler from computing it after the wait for earlier launches.
    CERMET_DEVICE void settle() const { asm volatile("" ::"r"(row), "r"(column), "r"(count)); }
  };
  static CERMET_DEVICE Start start_of(const Params& p, uint32_t item) {
    const int64_t begin = share_begin(p.share, p.rest, p.inverse, item);
    Start start{0, 0, static_cast<int>(share_begin(p.share, p.rest, p.inverse, item + 1) - begin)};
    int64_t column = begin;
    for (; column >= p.columns; column -= p.columns) ++start.row;  // rows are few
    start.column = static_cast<int>(column);
    return start;
  }
  /// Calls body(segment) for the results of an item. Whole warps call.
  template <class Body>
  static CERMET_DEVICE void for_segments(const Params& p, Start at, [[maybe_unused]] const Route<C>& route,
                                         Body&& body) {
    while (at.count > 0) {
      Segment s = first_segment(p, at);
      at = {at.row + 1, 0, at.count - (s.end - s.first)};
      if constexpr (C.routed) {
        if (!route.find(s.row, p.choices, s.group, s.x_row)) continue;
      } else if constexpr (C.grouped) {
        const auto found =
            gemm::find_group(static_cast<const Element<C.offsets>*>(p.offsets), p.groups, p.rows, 1, s.row);
        if (found.group < 0) continue;
        s.group = found.group;
        s.row = s.x_row = found.row;
      }
      body(s);
    }
  }

  static CERMET_DEVICE bool starts_early(const Params& p) { return !C.grouped && p.constant != 0; }
  static CERMET_DEVICE Segment first_segment(const Params& p, const Start& at) {
    return {at.row, 0, at.column, min_of(p.columns, at.column + at.count), at.row};
  }

#if CERMET_ARCH >= 900
  static CERMET_DEVICE WeightRows weights_of(const Params& p, const Segment& s) {
    const int64_t group = s.group * p.w_group_stride * element;
    return {{static_cast<const char*>(p.w) + group, static_cast<const char*>(p.w_up) + group},
            {p.w_stride * element, p.w_up_stride * element},
            s.first,
            s.end};
  }
#endif
};

}  // namespace cermet::gemv
