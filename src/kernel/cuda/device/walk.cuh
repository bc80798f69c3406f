// A kernel of as many blocks as fit on the device at once, each of which walks the same list of tasks. The last warp of
// a block feeds the ring of stages with the weights of whatever comes next, ahead of the others by tasks; the others
// compute. A task waits for the tasks that it needs by counters of blocks that have ended them. These only grow: a run
// compares with the number of runs before it, so that nothing has to be zeroed.
#pragma once

#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/handoff.cuh"
#include "kernel/cuda/device/meeting.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/stream_ring.hpp"
#include "kernel/cuda/device/task.cuh"
#include "kernel/cuda/device/walk.hpp"

#if CERMET_ARCH >= 900
namespace cermet::walk {

/// Shared memory: control, ring, what the tasks use, the present task's parameters, instances and needs.
struct Control {
  uint64_t barriers[2 * stream::most_stages];                      ///< of the ring's stages: full ones, then empty ones
  uint64_t row_barriers[stream::row_sets][2][stream::row_stages];  ///< the same of each set's rows
  uint32_t runs;                                                   ///< that ended before this one
  uint32_t zero;
  uint32_t announced;  ///< instances at the list's begin that this block has ended and announced
};
static_assert(sizeof(Control) <= stream::control_bytes);
static_assert(StreamTeam<64, 2, 1024, 1>::control_bytes == stream::control_bytes);

/// Sizes of a walk. Threads: of all warps that compute, and of the last one, which feeds. No stages: no ring, and no
/// warp that feeds; tasks that stream have rings of their own.
template <int Threads, int Stages, int Pitch, int BodyBytes>
struct Shape {
  static constexpr int threads = Threads, computing = Stages > 0 ? Threads - 32 : Threads, stages = Stages,
                       pitch = Pitch;
  static constexpr int ring_at = stream::control_bytes, body_at = ring_at + Stages * Pitch,
                       params_at = body_at + BodyBytes, table_at = params_at + most_params;
  static_assert(Stages <= stream::most_stages && Pitch % 128 == 0 && body_at % 1024 == 0 && BodyBytes % 128 == 0);
};

inline constexpr int boundary_barrier = 1;

CERMET_DEVICE uint64_t now() {
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}

/// The arguments of a body. All of it lies in shared memory or in parameters.
struct Call {
  const Params& walk;
  const Control& control;
  const Instance* instances;
  const uint32_t* needs;
  char* params;   ///< where the present task's parameters may be put
  uint32_t at;    ///< the present instance
  uint32_t runs;  ///< that ended before this one, rounds of this launch included
};

/// The first item of an instance that this block computes; those gridDim.x behind it follow.
CERMET_DEVICE uint32_t first_item(const Instance& instance) {
  const uint32_t first = instance.first_block;
  return blockIdx.x >= first ? blockIdx.x - first : blockIdx.x + gridDim.x - first;
}

/// Lets all waits of this run end, so that the kernel does, and tells the host who waited for whom. What is computed
/// from here on means nothing.
CERMET_DEVICE void give_up(const Params& p, uint32_t instance, uint32_t need, uint32_t wanted, uint32_t found) {
  if (atomicExch(p.counters + gave_up_at * counter_pitch, 1u) != 0) return;
  Stuck& stuck = *p.stuck;
  stuck.block = blockIdx.x, stuck.instance = instance, stuck.need = need, stuck.wanted = wanted, stuck.found = found;
  __threadfence_system();
  stuck.happened = 1;
  __threadfence_system();
}

/// Until a part of the list of needs has ended in so many runs; by a whole warp, each of whose lanes has some of them.
CERMET_DEVICE void wait_in_warp(const Call& call, uint32_t first, uint32_t count, uint32_t runs) {
  for (uint32_t i = lane_index(); i < count; i += 32) {
    const uint32_t need = call.needs[first + i], arrivals = call.instances[need].arrivals, wanted = runs * arrivals;
    const uint32_t* const counter = call.walk.counters + (first_counter + need) * counter_pitch;
    uint64_t since = 0;
    uint32_t tries = 0, found;
    while (static_cast<int32_t>((found = ptx::load_acquire(counter)) - wanted) < 0) {
      if (++tries % 1024 != 0) continue;
      if (ptx::load_acquire(call.walk.counters + gave_up_at * counter_pitch) != 0) break;
      const uint64_t time = now();
      if (since == 0) since = time;
      else if (time - since > call.walk.patience)
        give_up(call.walk, call.at, need, arrivals, found - (runs - 1) * arrivals);
    }
  }
  __syncwarp();
}

/// Until all that the present instance needs has ended.
CERMET_DEVICE void wait_in_warp(const Call& call) {
  const Instance& instance = call.instances[call.at];
  wait_in_warp(call, instance.first_need, instance.needs, call.runs + 1);
}

/// Until the round before has ended, where there is one in this launch.
CERMET_DEVICE void wait_for_round(const Call& call) {
  if (call.runs != call.control.runs)
    wait_in_warp(call, call.walk.needs - call.walk.carried, call.walk.carried, call.runs);
}

template <class Team>
CERMET_DEVICE void note(const Call& call, Team team, uint64_t Times::*what) {
  if (call.walk.times != nullptr && team.rank() == 0)
    call.walk.times[uint64_t{blockIdx.x} * call.walk.count + call.at].*what = now();
}

/// Whether a task's weights go through the ring that all tasks share.
template <class Task, class Team>
concept Streams = requires {
  Team::ring_stages;
}
&&Task::shares_ring;

/// Whether copies of a task read tensor maps, which lie with its parameters in device memory: a copy of those in shared
/// memory does not serve.
template <class Task>
concept ReadsMaps = requires(const typename Task::Params& far) {
  Task::acquire_maps(far);
};

/// Whether a task's items leave each other numbers, in memory that a walk has for them.
template <class Task, class Team>
concept Meets = requires(const typename Task::Params& p, Team team, char* smem, const Meeting& meeting) {
  Task::meet(p, 0u, team, smem, meeting);
};

/// The areas of an instance, which runs take in turn.
CERMET_DEVICE Meeting meeting_of(const Call& call, const Instance& instance) {
  char* const both = reinterpret_cast<char*>(instance.meeting);
  const uint64_t now = call.runs % 2 * uint64_t{instance.meeting_bytes};
  return {both + now, both + (instance.meeting_bytes - now), gridDim.x >= instance.items};
}

/// A body, for the warps that compute.
template <class Task, class Team>
CERMET_DEVICE void compute(const Call& call, StreamState& state, char* smem) {
  using TaskParams = typename Task::Params;
  constexpr Team team;
  constexpr uint32_t threads = Streams<Task, Team> ? Team::size - 32 : Team::size;
  if (team.rank() >= threads) return;
  const Instance& instance = call.instances[call.at];
  const auto& far = *reinterpret_cast<const TaskParams*>(instance.params);
  // Parameters come nearer while others compute what is waited for.
  static_assert(sizeof(TaskParams) <= most_params && sizeof(TaskParams) % 4 == 0 && alignof(TaskParams) <= 64);
  for (uint32_t i = team.rank(); i < sizeof(TaskParams) / 4; i += threads)
    reinterpret_cast<uint32_t*>(call.params)[i] = reinterpret_cast<const uint32_t*>(&far)[i];
  if constexpr (Streams<Task, Team>) {
    if (instance.early) Task::prepare(far, first_item(instance), team);
  }
  if constexpr (Meets<Task, Team>)
#pragma unroll 1
    for (uint32_t item = first_item(instance); item < instance.items; item += gridDim.x)
      Task::prepare(far, item, team, meeting_of(call, instance), instance.early != 0);
  if (team.warp() == 0) {
    wait_in_warp(call);
    if constexpr (!Streams<Task, Team> && !Meets<Task, Team>)
      ptx::fence_proxies();  // what was written by ordinary stores, before bulk copies read it
  }
  team.sync();
  note(call, team, &Times::ready);
  const auto& p = ReadsMaps<Task> && !Streams<Task, Team> ? far : *reinterpret_cast<const TaskParams*>(call.params);
  if constexpr (Streams<Task, Team>) {
#pragma unroll 1
    for (uint32_t item = first_item(instance); item < instance.items; item += gridDim.x) {
      if constexpr (ReadsMaps<Task>) Task::multiply(p, far, item, team, smem, state);
      else Task::multiply(p, item, team, smem, state);
    }
  } else if constexpr (Meets<Task, Team>) {
    // In this order: an item waits for those of lower numbers only, which no block of any number has after it.
#pragma unroll 1
    for (uint32_t item = first_item(instance); item < instance.items; item += gridDim.x)
      Task::meet(p, item, team, smem, meeting_of(call, instance));
  } else {
    using Body = TaskCall<Task, Team>;
    if constexpr (ReadsMaps<Task>) Task::acquire_maps(far);
    if constexpr (Body::keeps_ring) ptx::fence_async_shared();  // what earlier tasks did to the memory of the ring
    typename Body::Ring ring(p, team, smem);
#pragma unroll 1
    for (uint32_t item = first_item(instance); item < instance.items; item += gridDim.x) {
      if (Body::halves && !Body::keeps_ring && item >= gridDim.x) team.sync();  // the last item's shared memory
      Body::fetch(p, item, team, smem, ring);
      Body::compute(p, item, team, smem, ring);
    }
    ring.close(p, team, smem);
    ptx::bulk_wait<0>();  // bulk copies that this thread started: not only read from shared memory, but written
    ptx::fence_proxies();
  }
}

/// The same for the warp that feeds, of tasks that stream weights.
template <class Task, class Team>
CERMET_DEVICE void feed(const Call& call, StreamState& state, char* smem) {
  static_assert(Streams<Task, Team>);
  constexpr Team team;
  const Instance& instance = call.instances[call.at];
  const auto& p = *reinterpret_cast<const typename Task::Params*>(instance.params);
  if constexpr (ReadsMaps<Task>) Task::acquire_maps(p);
  // Lanes look on their own; only the block's other warps write it, and they never wait for this one's later instances.
  const uint32_t round = call.runs - call.control.runs;
  if (instance.feeds_after > 0)
    while (*static_cast<const volatile uint32_t*>(&call.control.announced) <
           round * call.walk.count + instance.feeds_after)
      __nanosleep(20);
  __syncwarp();
  if (!instance.early || !Task::starts_early(p, team)) {
    wait_for_round(call);
    wait_in_warp(call);
    ptx::fence_proxies();
  }
#pragma unroll 1
  for (uint32_t item = first_item(instance); item < instance.items; item += gridDim.x)
    Task::feed(p, item, team, smem, state);
}

/// The kernel. compute(body, call, state, smem) and feed(body, call, state, smem) are the bodies.
template <class S, class Compute, class Feed>
CERMET_DEVICE void walk(const Params& p, char* smem, Compute&& compute, Feed&& feed) {
  asm volatile(".reg .u32 cermet_thread;\n mov.u32 cermet_thread, %0;" ::"r"(threadIdx.x));
  auto& control = *reinterpret_cast<Control*>(smem);
  auto* const instances = reinterpret_cast<Instance*>(smem + S::table_at);
  {
    const uint32_t words = p.count * (sizeof(Instance) / 4) + p.needs;
    for (uint32_t i = threadIdx.x; i < words; i += S::threads)
      reinterpret_cast<uint32_t*>(instances)[i] = reinterpret_cast<const uint32_t*>(p.instances)[i];
  }
  if (threadIdx.x == 0) {
    control.zero = control.announced = 0;
    for (int s = 0; s < S::stages; ++s) {
      ptx::mbarrier_init(&control.barriers[s], 1);
      ptx::mbarrier_init(&control.barriers[S::stages + s], S::computing / 32);
    }
    for (auto& set : control.row_barriers)
      for (int s = 0; s < stream::row_stages; ++s) {
        ptx::mbarrier_init(&set[0][s], 1);
        ptx::mbarrier_init(&set[1][s], stream::row_warps);
      }
    ptx::fence_mbarrier_init();
    control.runs = ptx::load_acquire(p.counters + runs_at * counter_pitch);
    p.progress[blockIdx.x] = 0;
    if (blockIdx.x == 0) *static_cast<volatile uint32_t*>(&p.stuck->begun) = control.runs + 1;
  }
  __syncthreads();
  StreamState state;
  Call call{p, control, instances, reinterpret_cast<const uint32_t*>(instances + p.count), smem + S::params_at, 0, 0};
  // Every thread's index is a value of the walk's round.
  const auto next_round = [&] {
    const uint32_t zero = *static_cast<const volatile uint32_t*>(&control.zero);
    asm volatile("add.u32 cermet_thread, %0, %1;" ::"r"(zero), "r"(threadIdx.x) : "memory");
  };
  if (threadIdx.x >= S::computing) {
#pragma unroll 1
    for (uint32_t round = 0; round < p.rounds; ++round) {
      call.runs = control.runs + round;
#pragma unroll 1
      for (uint32_t i = 0; i < p.count; ++i) {
        if (instances[i].streams == 0) continue;
        next_round();
        call.at = i;
        feed(instances[i].body, call, state, smem + S::body_at);
      }
    }
    return;
  }
#pragma unroll 1
  for (uint32_t round = 0; round < p.rounds; ++round) {
    call.runs = control.runs + round;
    if (round > 0) {
      if (threadIdx.x < 32) wait_for_round(call);
      ptx::named_barrier(boundary_barrier, S::computing);
    }
#pragma unroll 1
    for (uint32_t i = 0; i < p.count; ++i) {
      const Instance& instance = instances[i];
      const uint32_t announced = round * p.count + i + 1;
      if (first_item(instance) >= instance.items) {
        if (threadIdx.x == 0) *static_cast<volatile uint32_t*>(&control.announced) = announced;
        continue;
      }
      next_round();
      call.at = i;
      if (threadIdx.x == 0) p.progress[blockIdx.x] = i + 1;
      if (p.times != nullptr && threadIdx.x == 0) p.times[uint64_t{blockIdx.x} * p.count + i].begin = now();
      compute(instance.body, call, state, smem + S::body_at);
      if (p.times != nullptr && threadIdx.x == 0) p.times[uint64_t{blockIdx.x} * p.count + i].computed = now();
      ptx::named_barrier(boundary_barrier, S::computing);
      if (threadIdx.x == 0) {
        ptx::add_release(p.counters + (first_counter + i) * counter_pitch, 1);
        *static_cast<volatile uint32_t*>(&control.announced) = announced;
      }
      if (p.times != nullptr && threadIdx.x == 0) p.times[uint64_t{blockIdx.x} * p.count + i].announced = now();
    }
  }
  if (threadIdx.x != 0) return;
  p.progress[blockIdx.x] = p.count + 1;
  // The last block of the run makes it one of those that ended.
  __threadfence();
  if (atomicAdd(p.counters + ended_at * counter_pitch, 1u) != gridDim.x - 1) return;
  p.counters[ended_at * counter_pitch] = p.counters[gave_up_at * counter_pitch] = 0;
  *static_cast<volatile uint32_t*>(&p.stuck->ended) = control.runs + 1;
  ptx::add_release(p.counters + runs_at * counter_pitch, p.rounds);
}

}  // namespace cermet::walk
#endif
