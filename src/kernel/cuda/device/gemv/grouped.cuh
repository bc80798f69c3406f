// GEMV of rows that are sorted by group, as offsets say: each group has a weight of its own.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemv/prologue.cuh"

namespace cermet::gemv {

template <DType Offsets>
struct GroupedRows {
  static constexpr bool sorts = false;
  CERMET_DEVICE explicit GroupedRows(const Params&) {}
  static CERMET_DEVICE bool are_known(const Params&) { return false; }
  CERMET_DEVICE bool find(const Params& p, Segment& s) const {
    const auto found = gemm::find_group(static_cast<const Element<Offsets>*>(p.offsets), p.groups, p.rows, 1, s.row);
    s.group = found.group;
    s.row = s.x_row = found.row;
    return found.group >= 0;
  }
};

/// A variant of Gemv.
template <DType Offsets>
struct Grouped : Plain {
  using Rows = GroupedRows<Offsets>;
};

}  // namespace cermet::gemv
