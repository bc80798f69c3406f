// Tasks of one launch that were compiled apart: a block takes its items of one instance after another. Blocks must not be more than are resident at once, and
// an instance needs only earlier ones: then the first of all items that have not ended never waits.
#pragma once

#include "kernel/cuda/device/handoff.cuh"
#include "kernel/cuda/device/linked.hpp"
#include "kernel/cuda/device/task.cuh"

namespace cermet::linked {

/// A block's work for one instance: items first, first + step, ... below end. It lies in shared memory, where it costs the bodies no registers.
struct Work {
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
__device__ __forceinline__ void run_body(const volatile Work& work, char* smem) {
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
          team, work.need_count, [&](uint32_t i) { return work.ended + work.needs[i].instance; }, [&](uint32_t i) { return work.needs[i].items; });
    Call::compute(p, item, team, smem, ring);
    if (work.announced != nullptr) announce(team, work.announced);
  }
  ring.close(p, team, smem);
}

/// run(body, work) for every instance of which this block has items.
template <class Run>
__device__ __forceinline__ void run_instances(const Params& p, volatile Work& work, Run&& run) {
#if CERMET_ARCH >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#pragma unroll 1
  for (uint32_t i = 0; i < p.instances; ++i) {
    const Instance& instance = reinterpret_cast<const Instance*>(p.table)[i];
    const uint32_t first = (blockIdx.x + gridDim.x - instance.first_item % gridDim.x) % gridDim.x;
    if (first >= instance.items) continue;
    if (threadIdx.x == 0) {
      work.params = p.table + instance.params;
      work.needs = reinterpret_cast<const Need*>(p.table + p.instances * sizeof(Instance)) + instance.first_need;
      work.need_count = instance.needs;
      work.first = first;
      work.end = instance.items;
      work.step = gridDim.x;
      work.ended = p.ended;
      work.announced = instance.announces != 0 ? p.ended + i : nullptr;
    }
    __syncthreads();
    run(instance.body);
    __syncthreads();  // the next body uses the same shared memory
  }
}

}  // namespace cermet::linked
