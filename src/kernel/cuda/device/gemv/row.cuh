// GEMV of one row of x at a time: the weights stream by, each warp keeps its part of x in registers. For one row, for
// rows that have weights of their own (experts), and wherever nothing better fits.
#pragma once

#include "kernel/cuda/device/gemv/row_body.cuh"

namespace cermet::gemv {

template <Config C, class E>
struct Row {
  using Params = typename ParamsOf<C.rotation.given, C.chooses>::type;
  /// Experts' weights are asked for after the wait, when launches that only wait for their turn would be in the way.
  /// Beside int8 rows that a launch of its own makes, which is late itself, they are, too.
  static constexpr Overlap overlap = C.routed && C.stream ? Overlap::own
                                     : C.grouped || C.late || (C.w == DType::i8 && !C.prologue.quantize && !C.early)
                                         ? Overlap::late
                                         : Overlap::early;

  static constexpr bool waits_itself = C.rehearses;

  /// What goes on from item to item: where each warp is in the ring of stages, and which of two areas the next sums go
  /// to.
  struct Ring {
    int buffer = 0;
    PipelineState at;
    typename RowWork<C>::Start start;  ///< of the item that was fetched last
    bool is_open = false;              ///< whether all threads know that the barriers are set up
    bool waits = C.rehearses;          ///< whether this thread has not waited for earlier launches yet

    template <class Team>
    CERMET_DEVICE Ring(const Params&, Team team, char* smem) {
#if CERMET_ARCH >= 900
      using Body = RowBody<C, E, Team>;
      if constexpr (C.stream) {
        if (team.warp() == Body::S.warps) init_ring<Body>(smem, at);
      }
#endif
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, [[maybe_unused]] Team team, [[maybe_unused]] char* smem) {
#if CERMET_ARCH >= 900
      if constexpr (C.stream) end_ring<RowBody<C, E, Team>>(team, smem);
#endif
    }
  };

  /// Weights begin to flow; who does not start them loads parameters meanwhile. All that can be done before the wait
  /// for earlier launches is done here: what comes after it delays every result.
  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    using Body = RowBody<C, E, Team>;
    ring.start = Body::Work::start_of(p, item);
#if CERMET_ARCH >= 900
    const bool feeds = C.stream && team.warp() == Body::S.warps;
    if constexpr (C.stream)
      if (feeds) Body::feed_early(p, ring.start, typename Body::Place(smem), ring.at);
    if constexpr (C.chooses)
      if (feeds) Route<C>::warm_up(p);
    if (!feeds) {
      ring.start.settle();
      if (!ring.is_open) {
        constexpr int all = sizeof(gemv::Params),
                      unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
        touch_parameters<0, all - unused>(p);
        if constexpr (C.rotation.given || C.chooses) touch_parameters<all, sizeof(Params) - all>(p);
        Body::Loader::fetch(p, static_cast<int>(team.warp()) % Body::S.along);
      }
    }
    if constexpr (C.stream)
      if (!ring.is_open) team.sync();
#endif
    ring.is_open = true;
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t, Team team, char* smem, Ring& ring) {
    using Body = RowBody<C, E, Team>;
    const typename Body::Place place(smem);
    static_assert(CERMET_ARCH >= 900 || !C.stream);
#if CERMET_ARCH >= 900
    if constexpr (C.stream) {
      if (team.warp() == Body::S.warps) {
        if (ring.waits && p.constant == 0) wait_for_earlier_launches();
        Body::feed(p, ring.start, Body::early_steps(p, ring.start), place, ring.at);
      } else {
        Body::run_stream(p, ring.start, place, ring.buffer, ring.at, ring.waits);
      }
      ring.waits = false;
      return;
    }
#endif
    if constexpr (!C.stream) Body::run_direct(p, ring.start, place, ring.buffer);
  }

#if CERMET_ARCH >= 900
  /// The same by two who need not meet, where the ring of stages belongs to all tasks of a kernel (StreamTeam): the
  /// last warp feeds, the others multiply.
  static constexpr bool shares_ring = C.stream;

  /// Whether the weights may be fetched before earlier tasks have ended.
  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params& p, Team) {
    return RowBody<C, E, Team>::Work::starts_early(p);
  }
  template <class Team>
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = RowBody<C, E, Team>;
    Body::feed(p, Body::Work::start_of(p, item), 0, typename Body::Place(smem), at.stages);
  }
  /// What the warps that multiply can do before earlier tasks have ended.
  template <class Team>
  static CERMET_DEVICE void prepare(const Params& p, uint32_t, Team team) {
    using Body = RowBody<C, E, Team>;
    Body::Loader::fetch(p, static_cast<int>(team.warp()) % Body::S.along);
  }
  template <class Team>
  static CERMET_DEVICE void multiply(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    using Body = RowBody<C, E, Team>;
    const auto start = Body::Work::start_of(p, item);
    if constexpr (C.routed) {  // by a warp behind which the block announces its end, as the feeding one is not
      if (start.is_first() && Team::warp() == 0) {
        const Route<C> route(p);
        route.store(p), route.store_weights(p);
      }
    }
    Body::run_stream(p, start, typename Body::Place(smem), at.buffer, at.stages);
  }
#endif
};

}  // namespace cermet::gemv
