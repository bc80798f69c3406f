// What a kernel that walks a list of tasks reads to know its work: written by the host, in device memory.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::walk {

/// One use of a body. Item i is computed by block (first_block + i) % blocks; a block takes instances in the order of
/// the list.
struct Instance {
  uint64_t params;  ///< address of Task::Params in device memory
  uint32_t items;
  uint32_t body;
  uint32_t first_need, needs;  ///< in the list of all needs
  uint32_t arrivals;           ///< blocks that have items: what its counter grows by in a run
  uint8_t streams;             ///< whether its weights go through the ring that all tasks share
  uint8_t early;               ///< whether it may ask for weights and keys before what it needs has ended
  uint16_t first_block;        ///< that of item 0
  uint64_t meeting;  ///< address of two areas of meeting_bytes, which runs take in turn (meeting.cuh); 0: the task
                     ///< wants none
  uint32_t meeting_bytes;
  uint32_t feeds_after;  ///< instances at the list's begin that a block has announced before it asks for this one's
                         ///< weights: 0 for as early as the ring allows
};
static_assert(sizeof(Instance) == 48);

/// Counters lie in lines of their own, so that the L2's slices share them out.
inline constexpr int counter_pitch = 32;
/// Which counters there are: runs that have ended; blocks of this run that have ended; whether a wait of this run was
/// given up; then of each instance the blocks that have ended it, over all runs.
enum : uint32_t { runs_at, ended_at, gave_up_at, first_counter };

/// Room for a task's parameters in shared memory.
inline constexpr int most_params = 1024;

/// A wait that did not end, and whether a run goes on, in memory of the host.
struct Stuck {
  uint32_t happened, block;
  uint32_t instance, need;  ///< who waits for whom; places in the list of instances
  uint32_t wanted, found;   ///< blocks of the needed instance that should have ended in this run, and that had
  uint32_t begun, ended;    ///< number of the run that began last, and of that which ended last
};

/// Times of an instance on a block, in nanoseconds of the GPU's clock.
struct Times {
  uint64_t begin, ready, computed, announced;  ///< called; its inputs were there; computed; and announced
};

struct Params {
  const Instance* instances;  ///< [count], then uint32_t needs[needs]: instances
  uint32_t count, needs;
  uint32_t* progress;  ///< [blocks]: how far each is in this run: its present instance, counted from 1; count + 1
                       ///< after the last
  uint32_t rounds;     ///< runs in a row: the list is gone through so often
  uint32_t carried;    ///< the last of the needs: what has to end in a round before the next one begins, beside what
                       ///< others need
  uint32_t* counters;  ///< [first_counter + count] of counter_pitch; zeros before the first run
  Stuck* stuck;
  Times* times;       ///< [blocks, count]; null: not wanted
  uint64_t patience;  ///< nanoseconds that a wait may take
};

}  // namespace cermet::walk
