// What every compiled task has around it: the entry function of a generated source is one call of run_items.
//
// A task is a type with
//   struct Params                              plain data
//   run(p, item, team, smem)                   all of a work item; items come in any order. Where it streams what no
//   launch writes (weights), two halves: fetch(p, item, team, smem)                 starts what depends on no earlier
//   task, and waits for none compute(p, item, team, smem)               the rest; a fetch of the same item comes before
// Shared memory is what the caller hands in, in any state. Halves have it to themselves from fetch to the end of
// compute; what is run in one piece puts team.sync() between the last reads of one item and the first writes of the
// next. What is to live on from item to item is a
//   struct Ring                                set up by Ring(p, team, smem) before a block's first item, handed to
//   every call as the last argument, and
//                                              ended by ring.close(p, team, smem) after the last item, when nothing of
//                                              it is on its way any more; then the block ends. It keeps its own
//                                              position, because neither the number of blocks nor the items' numbers
//                                              say anything about it. The caller puts no barrier between items.
// A task whose warps have roles that run ahead of each other may loop over a block's items itself instead of run():
//   run_all(p, items, team, smem)              items: BlockItems. It has whole blocks, and is part of no walk
// A task whose launches have a block for each item may say so (one_item): then nothing is computed once for all items
// of a block, and kept in registers.
#pragma once

#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/task.cuh"

namespace cermet {

/// Blocks of so many threads that an SM can hold, at most `wanted`.
constexpr int resident_blocks(int threads, int wanted) {
  constexpr int most_threads = CERMET_ARCH == 750 ? 1024 : CERMET_ARCH == 860 || CERMET_ARCH == 890 ? 1536 : 2048;
  constexpr int most_blocks = CERMET_ARCH == 750 || CERMET_ARCH == 860 ? 16 : CERMET_ARCH == 890 ? 24 : 32;
  const int that_fit = most_threads / threads < most_blocks ? most_threads / threads : most_blocks;
  return wanted < that_fit ? wanted : that_fit;
}

/// Whether a task's halves wait for earlier launches themselves, in compute of a block's first item.
template <class Task>
constexpr bool waits_itself() {
  if constexpr (requires { Task::waits_itself; }) return Task::waits_itself;
  else return false;
}

/// Whether no block of a task's launches has a second item.
template <class Task>
constexpr bool has_one_item() {
  if constexpr (requires { Task::one_item; }) return Task::one_item;
  else return false;
}

/// Reads parameters for the first time, which takes as long as memory does, while the block waits for earlier launches
/// anyway.
template <class Params>
CERMET_DEVICE void read_ahead(const Params& p) {
  constexpr int line = 64 / sizeof(uint32_t), words = static_cast<int>(sizeof(Params) / sizeof(uint32_t));
  const auto* const from = reinterpret_cast<const uint32_t*>(&p);
#pragma unroll
  for (int at = 0; at < words; at += line) asm volatile("" ::"r"(from[at]));
}

#if CERMET_ARCH >= 900
/// The work items of this thread block where the next launch starts late. The wait is within the loop, so that the
/// compiler takes what no item changes (parameters, which are far away at first, and what follows from them) out of the
/// loop and before the wait.
template <class Task, class Team>
CERMET_DEVICE void run_items_late(const typename Task::Params& p, uint32_t items, Team team, char* smem) {
  using Call = TaskCall<Task, Team>;
  static_assert(!Call::halves && !Call::keeps_ring);
  NoRing ring(p, team, smem);
  uint32_t item = blockIdx.x;
  asm volatile("" ::"r"(team.rank()));  // read before the wait, too, which the compiler would rather do after it
#pragma unroll 1
  while (true) {
    if (item == blockIdx.x) {
      wait_for_earlier_launches();
      start_next_launch();
    }
    if (item >= items) return;
    Call::compute(p, item, team, smem, ring);
    item += gridDim.x;
  }
}
#endif

/// The work items of this thread block. Where launches overlap (programmatic dependent launch, sm_90 and later), the
/// block lets the next launch start at once (or after its own wait: overlap.cuh) and touches what earlier launches
/// write only after they have ended; what no launch writes (weights) it may fetch before.
template <class Task, class Team>
requires(!TaskCall<Task, Team>::loops) CERMET_DEVICE
    void run_items(const typename Task::Params& p, uint32_t items, char* smem) {
  using Call = TaskCall<Task, Team>;
  constexpr Team team;
#if CERMET_ARCH >= 900
  constexpr Overlap overlap = overlap_of<Task>();
  constexpr bool late = overlap == Overlap::late;
  if constexpr (late && !Call::halves) return run_items_late<Task>(p, items, team, smem);
  if constexpr (overlap == Overlap::early) start_next_launch();
#endif
  typename Call::Ring ring(p, team, smem);
  if constexpr (Call::halves) {
    // One fetch in the code, although only the first item's comes before the wait.
#pragma unroll 1
    for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) {
      if (!Call::keeps_ring && item != blockIdx.x) team.sync();  // the last item's shared memory
      Call::fetch(p, item, team, smem, ring);
      if (!waits_itself<Task>() && item == blockIdx.x) {
        wait_for_earlier_launches();
#if CERMET_ARCH >= 900
        if constexpr (late) start_next_launch();
#endif
      }
      Call::compute(p, item, team, smem, ring);
      if constexpr (has_one_item<Task>()) break;
    }
  } else {
#if CERMET_ARCH >= 900
    if constexpr (overlap == Overlap::own) read_ahead(p);
#endif
    wait_for_earlier_launches();
    for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) Call::compute(p, item, team, smem, ring);
  }
  ring.close(p, team, smem);
}

/// The same where the task loops itself.
template <class Task, class Team>
requires(TaskCall<Task, Team>::loops) CERMET_DEVICE
    void run_items(const typename Task::Params& p, uint32_t items, char* smem) {
#if CERMET_ARCH >= 900
  static_assert(overlap_of<Task>() == Overlap::early);
  start_next_launch();
#endif
  Task::run_all(p, BlockItems{blockIdx.x, items, gridDim.x}, Team(), smem);
}

}  // namespace cermet
