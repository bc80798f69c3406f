// Calls of a task, whatever its form: in one piece or in two halves, with a ring or without.
#pragma once

#include "kernel/cuda/device/team.cuh"

namespace cermet {

/// In place of the ring of a task that has none.
struct NoRing {
  template <class Params, class Team>
  CERMET_DEVICE NoRing(const Params&, Team, char*) {}
  template <class Params, class Team>
  CERMET_DEVICE void close(const Params&, Team, char*) {}
};

template <class Task>
struct RingOf {
  using type = NoRing;
};
template <class Task>
requires requires { typename Task::Ring; }
struct RingOf<Task> {
  using type = typename Task::Ring;
};

/// Items first, first + step, .. below end: those of a thread block.
struct BlockItems {
  uint32_t first, end, step;
};

template <class Task, class Team>
struct TaskCall {
  using Params = typename Task::Params;
  using Ring = typename RingOf<Task>::type;
  static constexpr bool keeps_ring = requires { typename Task::Ring; };
  static constexpr bool loops = requires(const Params& p, BlockItems items, Team team, char* smem) {
    Task::run_all(p, items, team, smem);
  };
  static constexpr bool halves = requires(const Params& p, Team team, char* smem) { Task::fetch(p, 0u, team, smem); }
  || requires(const Params& p, Team team, char* smem, Ring& ring) { Task::fetch(p, 0u, team, smem, ring); };

  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, [[maybe_unused]] Ring& ring) {
    if constexpr (!halves) return;
    else if constexpr (keeps_ring) Task::fetch(p, item, team, smem, ring);
    else Task::fetch(p, item, team, smem);
  }

  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem,
                                    [[maybe_unused]] Ring& ring) {
    if constexpr (halves && keeps_ring) Task::compute(p, item, team, smem, ring);
    else if constexpr (halves) Task::compute(p, item, team, smem);
    else if constexpr (keeps_ring) Task::run(p, item, team, smem, ring);
    else Task::run(p, item, team, smem);
  }
};

}  // namespace cermet
