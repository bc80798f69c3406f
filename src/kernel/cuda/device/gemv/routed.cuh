// GEMV of a mixture's rows, each with the weight of its expert. Up to 32 pairs of a token and a chosen expert are
// sorted here, by each warp for itself (moe_permute); before that, the experts of the only token may be chosen here
// (topk_gating).
#pragma once

#include "kernel/cuda/device/gemv/prologue.cuh"
#include "kernel/cuda/device/gemv/routed.hpp"
#include "kernel/cuda/device/mixture/gating.cuh"

namespace cermet::gemv {

/// Lane i has pair i. A pair whose expert does not exist goes nowhere.
template <Routing R>
struct RoutedRows {
  using Gating = gating::Task<R.gating>;
  static constexpr bool sorts = true;
  int expert = -1;  ///< -1: of no pair
  int place = -1;   ///< among the sorted rows

  RoutedRows() = default;
  CERMET_DEVICE explicit RoutedRows(const Params& p) {
    if constexpr (R.gates) {
      const gating::Params& g = static_cast<const GatedParams&>(p).gating;
      *this = gated(g.logits, g.bias, g.vectors != 0, lane_index());
    } else {
      const int lane = static_cast<int>(lane_index());
      if (lane < p.rows) {
        const int64_t id =
            static_cast<const Element<R.ids>*>(p.ids)[lane / p.choices * p.ids_stride + lane % p.choices];
        if (id >= 0 && id < p.groups) expert = static_cast<int>(id);
      }
      sort(p.rows, lane_index());
    }
  }
  static CERMET_DEVICE bool are_known(const Params&) { return false; }

  /// Of the only token. One function for all warps: see warm_up(). The lane is an argument, because a walk's thread
  /// index is a register of the kernel alone.
  static __device__ __noinline__ RoutedRows gated(const void* logits, const void* bias, bool vectors, uint32_t lane) {
    RoutedRows rows;
    const int id = Gating::find_ids(static_cast<const typename Gating::T*>(logits), bias, vectors, lane);
    if (lane < R.gating.k) rows.expert = id;
    rows.sort(R.gating.k, lane);
    return rows;
  }
  /// Brings the code of the gating to the SM while the launch waits: of any numbers that no launch writes, such as
  /// weights, which are more than logits.
  static CERMET_DEVICE void warm_up(const Params& p) {
    if constexpr (R.gates) {
      if (p.constant == 0 || reinterpret_cast<uintptr_t>(p.w) % 16 != 0) return;
      const RoutedRows rows = gated(p.w, p.w, static_cast<const GatedParams&>(p).gating.vectors != 0, lane_index());
      asm volatile("" ::"r"(rows.expert), "r"(rows.place));
    }
  }

  CERMET_DEVICE void sort(int pairs, uint32_t lane) {
    int before = 0;
    for (int i = 0; i < pairs; ++i) {
      const int other = __shfl_sync(0xffffffffu, expert, i);
      before += other >= 0 && (other < expert || (other == expert && i < static_cast<int>(lane))) ? 1 : 0;
    }
    if (expert >= 0) place = before;
  }

  /// The expert and the token of a sorted row; false where there is none. All lanes call.
  CERMET_DEVICE bool find(const Params& p, Segment& s) const {
    const uint32_t owner = __ballot_sync(0xffffffffu, place == s.row);
    if (owner == 0) return false;
    const int pair = __ffs(static_cast<int>(owner)) - 1;
    s.group = __shfl_sync(0xffffffffu, expert, pair);
    s.x_row = R.gates ? 0 : pair / p.choices;
    return true;
  }

  /// By one warp: what gating gives beside the experts.
  static CERMET_DEVICE void store_weights(const Params& p) {
    if constexpr (R.gates)
      Gating::template run_token<false>(static_cast<const GatedParams&>(p).gating, 0, lane_index(), nullptr);
  }

  /// By one warp: what sorting gives beside the rows.
  CERMET_DEVICE void store(const Params& p) const {
    const int lane = static_cast<int>(lane_index());
    if (p.row_of != nullptr && lane < p.rows) p.row_of[lane / p.choices * p.row_of_stride + lane % p.choices] = place;
    if (p.sorted_offsets == nullptr) return;
    for (int first = 0; first <= p.groups; first += 32) {
      int before = 0;  // pairs of the experts before this lane's
      for (int i = 0; i < p.rows; ++i) {
        const int other = __shfl_sync(0xffffffffu, expert, i);
        before += other >= 0 && other < first + lane ? 1 : 0;
      }
      if (first + lane <= p.groups) p.sorted_offsets[first + lane] = before;
    }
  }
};

template <bool Gates>
struct RoutedParamsOf {
  using type = Params;
};
template <>
struct RoutedParamsOf<true> {
  using type = GatedParams;
};
/// A variant of Gemv.
template <Routing R>
struct Routed : Plain {
  using Params = typename RoutedParamsOf<R.gates>::type;
  using Rows = RoutedRows<R>;
};

}  // namespace cermet::gemv
