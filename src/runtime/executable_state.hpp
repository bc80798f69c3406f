// What an executable holds: the compiler fills it, run() walks it.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "device/plan.hpp"
#include "jit/program_store.hpp"
#include "runtime/bound_memory.hpp"
#include "runtime/calls_beside.hpp"
#include "runtime/capture_cache.hpp"
#include "runtime/executable.hpp"
#include "runtime/super_kernel/super_kernels.hpp"
#include "runtime/super_kernel/walk_cost.hpp"
#include "runtime/timing.hpp"

namespace cermet {

/// A bound kernel: operands [first, first + inputs) are read and the `outputs` after them written.
struct ExecutableStep {
  Launcher launch;
  std::size_t first = 0, inputs = 0, outputs = 0;
  std::int64_t workspace_bytes = 0;
  bool empty = false;                         ///< no result has elements with the present symbols: nothing to launch
  std::vector<cuda::LoadedProgram> programs;  ///< of a CUDA kernel
  std::optional<cuda::TaskQueue> queue;       ///< into the plan, of a CUDA kernel; the host calls the others
  Communicator* communicator = nullptr;       ///< of a kernel that communicates
};

struct Executable::State {
  Graph graph;
  BoundMemory memory;
  std::vector<ExecutableStep> steps;
  std::vector<StepInfo> infos;  ///< by step
  CaptureCache captures;
  std::optional<SuperKernels> super;  ///< nothing where no node is marked
  Timing timing;

  Plan plan;
  bool planned = false;                  ///< `plan` holds for the present symbols and operands
  bool ranges_planned = false;           ///< and says of every launch what it touches
  std::vector<ByteRange> reads, writes;  ///< of the launch whose ranges are being planned

  bool computes = true;
  bool completed = false;  ///< the last run reached its end
  ThreadPool* pool = nullptr;
  DeviceQueue queue;         ///< null on the CPU
  Stream* stream = nullptr;  ///< of the present run: the caller's, or the queue's
  std::int64_t row = 1;      ///< runs that the present call makes at once
  LaunchSelection selection;
  std::vector<Communicator*> communicators;  ///< of all steps, each once
  CallsBeside beside;
  bool calls_go_beside = false;  ///< in the launches that are being made

  std::span<const TensorView> operands_of(std::size_t step) const {
    return std::span(memory.operands).subspan(steps[step].first, steps[step].inputs + steps[step].outputs);
  }
  LaunchArgs arguments(std::size_t step) const;
  Cost work_of(std::size_t step);
  /// Launches of the plan that are wanted.
  std::span<const Launch> wanted_launches() const {
    return plan.launches().first(std::min(selection.end, plan.launches().size()));
  }
  /// Whether runs are captured, so that several may be one launch.
  bool stream_captures() const {
    return queue.stream && captures.enabled && computes && !timing.on && selection == LaunchSelection{};
  }

  void make_plan(bool wants_ranges = false);
  void plan_ranges();
  void find_calls_beside();

  void execute_all();
  void execute(const Launch& launch);
  void call(const Launch& launch);
  void replay();
  void make_in_order(FunctionRef<void()> launch);
  void launch_all();
  void launch_in_order(FunctionRef<void(const Launch& launch)> launch);
  void launch_selected();
  void launch_all_timed();
  void launch_all_marked();
  void skip_all();
  void note_time(std::size_t step, double start, double seconds);

  // Regions on a GPU.
  std::vector<DealtLaunch> dealt_launches(const SuperRegion& region);
  WalkCost cost_of(const SuperRegion& region);
  std::vector<std::unique_ptr<DeviceRegion>> make_device_regions();
  std::vector<std::unique_ptr<DeviceRegion>> link_regions();
  void launch_regions(std::span<const std::unique_ptr<DeviceRegion>> regions);
  void launch_rows(std::span<const std::unique_ptr<DeviceRegion>> regions);

  // Regions on the CPU.
  class Threads;
  void plan_ahead();
  void walk_region(const SuperRegion& region, FunctionRef<void(const Launch& launch)> run);
  void walk_noted(const SuperRegion& region, std::size_t first, std::size_t end,
                  FunctionRef<void(const Launch& launch)> launch);
};

}  // namespace cermet
