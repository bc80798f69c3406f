// The second product of a mixture's experts for one token, whose rows are weighted and added as they are computed:
// grouped_linear and moe_unpermute (sm_90 on). Every expert has warps of its own; a stage of shared memory has the same
// rows of each expert's weight.
#pragma once

#include "kernel/cuda/device/gemv/combine_body.cuh"

namespace cermet::gemv {

template <Config C, class E>
struct Combine {
  using Params = gemv::Params;
  static constexpr Overlap overlap = Overlap::late;  ///< see Row

  struct Ring {
    int buffer = 0;
    PipelineState at;
    bool is_open = false;

    template <class Team>
    CERMET_DEVICE Ring(const Params&, Team team, char* smem) {
#if CERMET_ARCH >= 900
      using Body = CombineBody<C, E, Team>;
      if (team.warp() == Body::S.warps()) init_ring<Body>(smem, at);
#endif
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, [[maybe_unused]] Team team, [[maybe_unused]] char* smem) {
#if CERMET_ARCH >= 900
      end_ring<CombineBody<C, E, Team>>(team, smem);
#endif
    }
  };

  /// Which weights are read is not known before earlier tasks end, unless the one before says so.
  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, [[maybe_unused]] uint32_t item, Team team,
                                  [[maybe_unused]] char* smem, Ring& ring) {
    constexpr int unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
#if CERMET_ARCH >= 900
    using Body = CombineBody<C, E, Team>;
    if (p.early != 0 && team.warp() == Body::S.warps()) Body::feed_early(p, item, typename Body::Place(smem), ring.at);
#endif
    if (ring.is_open) return;
    touch_parameters<0, sizeof(Params) - unused>(p);
    team.sync();
    ring.is_open = true;
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
#if CERMET_ARCH >= 900
    using Body = CombineBody<C, E, Team>;
    const typename Body::Place place(smem);
    if (team.warp() == Body::S.warps()) Body::feed(p, item, place, ring.at);
    else Body::run(p, item, place, ring.buffer, ring.at);
#endif
  }

#if CERMET_ARCH >= 900
  /// The same by two who need not meet: see Row.
  static constexpr bool shares_ring = true;
  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params&, Team) {
    return false;
  }
  template <class Team>
  static CERMET_DEVICE void prepare(const Params&, uint32_t, Team) {}
  template <class Team>
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = CombineBody<C, E, Team>;
    Body::feed(p, item, typename Body::Place(smem), at.stages);
  }
  template <class Team>
  static CERMET_DEVICE void multiply(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = CombineBody<C, E, Team>;
    Body::run(p, item, typename Body::Place(smem), at.buffer, at.stages);
  }
#endif
};

}  // namespace cermet::gemv
