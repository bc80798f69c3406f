// Rows of a mixture's experts in a GEMV (routed.cuh): configuration and parameters, for both halves.
#pragma once

#include "kernel/cuda/device/gemv/gemv.hpp"
#include "kernel/cuda/device/mixture/gating.hpp"

namespace cermet::gemv {

/// How pairs of a token and a chosen expert are sorted by expert before the product, as moe_permute does it.
struct Routing {
  DType ids = {};
  bool gates = false;  ///< the only token's experts are chosen here as well, as topk_gating does it
  gating::Config gating = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("ids", ids), visit("gates", gates), visit("gating", gating);
  }
};

/// With topk_gating before the sorting: ids are null.
struct GatedParams : Params {
  gating::Params gating;
};

}  // namespace cermet::gemv
