// Up to 32 pairs of a token and a chosen expert, sorted by expert: moe_permute, each warp for itself.
#pragma once

#include "kernel/cuda/device/gemv/config.cuh"
#include "kernel/cuda/device/mixture/gating.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemv {

/// Lane i has pair i. A pair whose expert does not exist goes nowhere.
template <Config C>
struct Route {
  using Gating = gating::Task<C.gating>;
  int expert = -1;  ///< -1: of no pair
  int place = -1;   ///< among the sorted rows

  Route() = default;
  CERMET_DEVICE explicit Route(const Params& p) {
    if constexpr (C.chooses) {
      const gating::Params& g = static_cast<const ChoosingParams&>(p).gating;
      *this = chosen(g.logits, g.bias, g.vectors != 0, lane_index());
    } else if constexpr (C.routed) {
      const int lane = static_cast<int>(lane_index());
      if (lane < p.rows) {
        const int64_t id =
            static_cast<const Element<C.ids>*>(p.ids)[lane / p.choices * p.ids_stride + lane % p.choices];
        if (id >= 0 && id < p.groups) expert = static_cast<int>(id);
      }
      sort(p.rows, lane_index());
    }
  }

  /// Of the only token. One function for all warps: see warm_up(). It is told its lane, because a walk's thread index
  /// is a register of the kernel alone.
  static __device__ __noinline__ Route chosen(const void* logits, const void* bias, bool vectors, uint32_t lane) {
    Route route;
    const int id = Gating::find_ids(static_cast<const typename Gating::T*>(logits), bias, vectors, lane);
    if (lane < C.gating.k) route.expert = id;
    route.sort(C.gating.k, lane);
    return route;
  }
  /// Brings the code of the choice to the SM while the launch waits: of any numbers that nobody writes, such as
  /// weights, which are more than logits.
  static CERMET_DEVICE void warm_up(const Params& p) {
    if (p.constant == 0 || reinterpret_cast<uintptr_t>(p.w) % 16 != 0) return;
    const Route route = chosen(p.w, p.w, static_cast<const ChoosingParams&>(p).gating.vectors != 0, lane_index());
    asm volatile("" ::"r"(route.expert), "r"(route.place));
  }

  CERMET_DEVICE void sort(int pairs, uint32_t lane) {
    int before = 0;
    for (int i = 0; i < pairs; ++i) {
      const int other = __shfl_sync(0xffffffffu, expert, i);
      before += other >= 0 && (other < expert || (other == expert && i < static_cast<int>(lane))) ? 1 : 0;
    }
    if (expert >= 0) place = before;
  }

  /// The expert and the token of sorted row `row`; false where there is none. All lanes call.
  CERMET_DEVICE bool find(int row, int choices, int& group, int& token) const {
    const uint32_t owner = __ballot_sync(0xffffffffu, place == row);
    if (owner == 0) return false;
    const int pair = __ffs(static_cast<int>(owner)) - 1;
    group = __shfl_sync(0xffffffffu, expert, pair);
    token = C.chooses ? 0 : pair / choices;
    return true;
  }

  /// By one warp: what choosing gives beside the experts.
  static CERMET_DEVICE void store_weights(const Params& p) {
    if constexpr (C.chooses)
      Gating::template run_token<false>(static_cast<const ChoosingParams&>(p).gating, 0, lane_index(), nullptr);
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

}  // namespace cermet::gemv
