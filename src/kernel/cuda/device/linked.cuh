// Tasks of one launch that were compiled apart. Each thread block has items of one instance.
#pragma once

#include "kernel/cuda/device/handoff.cuh"
#include "kernel/cuda/device/linked.hpp"
#include "kernel/cuda/device/task.cuh"

namespace cermet::linked {

/// A block's work for one instance: items first, first + step, ... below end. It lies in shared memory, where it costs
/// the bodies no registers.
struct Work {
  uint32_t body;
  const void* params;
  const Need* needs;
  uint32_t need_count;
  uint32_t first, end, step;
  uint32_t* ended;      ///< of all instances
  uint32_t* announced;  ///< of this instance; null where nobody needs it
};

static_assert(sizeof(Work) <= work_bytes);

/// A body: what is compiled and linked once, whatever the number of its instances.
template <class Task, class Team>
CERMET_DEVICE void run_body(const volatile Work& work, char* smem) {
  using Call = TaskCall<Task, Team>;
  constexpr Team team;
  if (!team.contains_this_thread()) return;
  const auto& p = *static_cast<const typename Task::Params*>(work.params);
  typename Call::Ring ring(p, team, smem);
#pragma unroll 1
  for (uint32_t item = work.first; item < work.end; item += work.step) {
    if (Call::halves && !Call::keeps_ring && item != work.first) team.sync();  // the last item's shared memory
    Call::fetch(p, item, team, smem, ring);
    if (item == work.first)
      wait_for(
          team, work.need_count, [&](uint32_t i) { return work.ended + work.needs[i].instance; },
          [&](uint32_t i) { return work.needs[i].items; });
    Call::compute(p, item, team, smem, ring);
    if (work.announced != nullptr) announce(team, work.announced);
  }
  ring.close(p, team, smem);
}

/// Calls run(body) for the instance that is this block's. Blocks count themselves as they start: who needs another's
/// items only ever waits for blocks that started before. There is no loop over instances, because what does not change
/// in it (all that follows from a thread's index) would be kept in registers for every body at once.
template <class Run>
CERMET_DEVICE void run_instance(const Params& p, volatile Work& work, Run&& run) {
#if CERMET_ARCH >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (threadIdx.x == 0) {
    const uint32_t block = atomicAdd(p.counters + p.instances, 1u);
    const auto* const instances = reinterpret_cast<const Instance*>(p.table);
    uint32_t low = 0, high = p.instances;  // the last instance whose first block is not after this one
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (instances[middle].first_block <= block ? low : high) = middle;
    }
    const Instance& instance = instances[low];
    work.body = instance.body;
    work.params = p.table + instance.params;
    work.needs = reinterpret_cast<const Need*>(instances + p.instances) + instance.first_need;
    work.need_count = instance.needs;
    work.first = block - instance.first_block;
    work.end = instance.items;
    work.step = instance.blocks;
    work.ended = p.counters;
    work.announced = instance.announces != 0 ? p.counters + low : nullptr;
  }
  __syncthreads();
  run(work.body);
}

}  // namespace cermet::linked
