// What an executable holds: the compiler fills it, run() walks it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/pool_session.hpp"
#include "device/plan.hpp"
#include "jit/program_store.hpp"
#include "runtime/calls_beside.hpp"
#include "runtime/executable.hpp"
#include "runtime/memory_plan.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "runtime/super_kernel/walk_cost.hpp"
#include "runtime/view_layout.hpp"

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

/// The launches of a run, captured, with the symbols they hold for. Bound memory must not have changed since.
struct CapturedRun {
  SymbolValues symbols;
  std::int64_t row = 1;                                ///< runs that follow each other in it
  std::vector<std::unique_ptr<DeviceRegion>> regions;  ///< what it launches as one; the captured graph goes before them
  std::unique_ptr<CapturedGraph> graph;                ///< null until the second run
  bool warm = false;  ///< the first run launched one by one, so that libraries could initialize themselves
  std::int64_t last_used = 0;
};

/// Memory that the caller bound to an input of the graph.
struct InputBinding {
  ValueId value;
  int dense_dims = 1;  ///< trailing dimensions that the operators which read it need dense among themselves
  TensorView memory;   ///< `present` once bound
};

/// A result that a caller may take in memory of its own, and that memory; null: the arena.
struct ResultBinding {
  std::string_view name;
  std::byte* memory = nullptr;
};

/// Super-kernels of a graph that has some.
struct SuperKernels {
  std::vector<SuperStep> steps;             ///< by step
  std::vector<SuperKernelOptions> options;  ///< by super-kernel of the graph
  SuperLimits limits;
  SuperFormation formation;                          ///< of the present plan
  bool reported = false;                             ///< what cannot join
  bool loss_reported = false;                        ///< that some region is slower than its launches
  std::vector<std::vector<cuda::Program>> programs;  ///< by step, of CUDA kernels
  std::unique_ptr<PoolSession> session;              ///< in which the CPU walks a region
  std::vector<ReadAhead> ahead;                      ///< by launch of the plan, on the CPU
};

struct Executable::State {
  Graph graph;
  SymbolValues maximum, symbols;  ///< symbols: of the last run
  std::vector<Symbol> used_symbols;
  bool resolved = false;   ///< `views` and `operands` hold for `symbols`
  bool rebound = true;     ///< an input was bound since they were resolved
  bool completed = false;  ///< the last run reached its end
  bool timing = false, computes = true;
  ThreadPool* pool = nullptr;

  Plan plan;
  bool planned = false;                  ///< `plan` holds for the present symbols and operands
  bool ranges_planned = false;           ///< and says of every launch what it touches
  std::vector<ByteRange> reads, writes;  ///< of the launch whose ranges are being planned

  std::optional<SuperKernels> super;  ///< nothing where no node is marked

  DeviceQueue queue;         ///< null on the CPU
  Stream* stream = nullptr;  ///< of the present run: the caller's, or the queue's
  bool capture = false;
  LaunchSelection selection;
  std::vector<CapturedRun> captured;
  std::int64_t runs = 0;
  std::int64_t row = 1;                             ///< runs that the present call makes at once
  const CapturedRun* replayed = nullptr;            ///< by the last run
  std::vector<std::unique_ptr<DeviceEvent>> marks;  ///< of timed runs: one before each step and one behind it

  MemoryPlan memory;
  std::vector<ValueLayout> layouts;  ///< by value
  DeviceBuffer arena;                ///< planned values, then the workspace that all steps share
  std::byte* workspace = nullptr;

  std::vector<InputBinding> inputs;
  std::vector<std::int32_t> input_of_value;  ///< position in `inputs` of the root of a value; -1 for others
  std::vector<ResultBinding> results;
  std::vector<std::int32_t>
      result_of_value;            ///< position in `results` of the value with the same memory; -1 for others
  std::vector<TensorView> views;  ///< by value; of constants only those that are results of the graph
  std::vector<std::int32_t> symbolic_values;

  std::vector<ExecutableStep> steps;
  std::vector<Communicator*> communicators;  ///< of all steps, each once
  CallsBeside beside;
  bool calls_go_beside = false;  ///< in the launches that are being made
  std::vector<StepInfo> infos;   ///< one per step
  std::vector<Cost> costs;       ///< by step, at the present symbols; empty until a timed run needs them
  std::vector<OwnedTensor>
      offsets;  ///< by step of a timed run: where the groups of a grouped product begin; empty for others
  std::vector<LaunchTime> launches;  ///< of the last run, where it was timed
  std::vector<TaskTime> tasks;       ///< of the last run on the CPU, where a super-kernel has profile=1
  std::chrono::steady_clock::time_point started;
  std::vector<TensorView> operands;
  std::vector<std::int32_t> operand_value;     ///< by operand; -1 where it never changes
  std::vector<std::size_t> symbolic_operands;  ///< to refresh when a symbol changes
  std::vector<std::size_t> bound_operands;     ///< to refresh when memory is bound
  std::vector<std::size_t> result_operands;    ///< to refresh when memory is bound to a result

  void check_symbols(const SymbolValues& values) const;
  bool same_symbols(const SymbolValues& values) const;
  void refresh_inputs(const SymbolValues& values);
  void refresh_symbolic(const SymbolValues& values);
  void refresh_results(const SymbolValues& values);
  TensorView view_of(std::size_t value, const SymbolValues& values) const;
  LaunchArgs arguments(std::size_t i) const;
  void call(const Launch& launch);
  void make_in_order(FunctionRef<void()> launch);
  void make_plan(bool wants_ranges = false);
  void plan_ranges();
  void find_calls_beside();
  void form_super_kernels();
  void plan_ahead();
  void execute_all();
  void execute(const Launch& launch);
  void launch_all();
  void launch_selected();
  /// Launches of the plan that are wanted.
  std::span<const Launch> wanted_launches() const {
    return plan.launches().first(std::min(selection.end, plan.launches().size()));
  }
  void check_waits();
  void launch_regions(std::span<const std::unique_ptr<DeviceRegion>> regions);
  void launch_rows(std::span<const std::unique_ptr<DeviceRegion>> regions);
  std::vector<DealtLaunch> dealt_launches(const SuperRegion& region);
  WalkCost cost_of(const SuperRegion& region);
  std::vector<std::unique_ptr<DeviceRegion>> make_device_regions();
  std::vector<std::unique_ptr<DeviceRegion>> link_regions();
  class Threads;
  void launch_in_order(FunctionRef<void(const Launch& launch)> launch);
  void walk_region(const SuperRegion& region, FunctionRef<void(const Launch& launch)> run);
  void walk_noted(const SuperRegion& region, std::size_t first, std::size_t end,
                  FunctionRef<void(const Launch& launch)> launch);
  void launch_all_timed();
  void launch_all_marked();
  void skip_all();
  void replay();
  CapturedRun& captured_run();
  /// Whether runs are captured, so that several may be one launch.
  bool stream_captures() const {
    return queue.stream && capture && computes && !timing && selection == LaunchSelection{};
  }
  /// Whether the pool's threads may stay from run to run.
  bool holds_rows() const {
    return super && super->session && communicators.empty() &&
           std::ranges::none_of(super->options, [](const auto& each) { return each.debug_sync_all; });
  }
  void note_costs();
  void keep_offsets(std::size_t i);
  Cost work_of(std::size_t i) const;
  void add_work(std::size_t i, double start, double seconds);
};

}  // namespace cermet
