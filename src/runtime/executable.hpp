// A compiled graph: bound kernels in order, one arena planned by lifetime, operands bound by name.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "base/function_ref.hpp"
#include "device/device.hpp"
#include "device/plan.hpp"
#include "graph/graph.hpp"
#include "kernel/kernel.hpp"
#include "runtime/weights.hpp"

namespace cermet {

struct SuperFormation;
struct SuperRegion;
struct DealtLaunch;

/// A kernel of an executable, for reports.
struct StepInfo {
  std::string scope;
  std::string kernel;
  std::vector<const WeightLayout*> layouts;  ///< by operand: of packed weights; null where row-major
  Region region;
  std::vector<std::string> programs = {};  ///< of a CUDA kernel, by the places that its launches name: "gemm/hopper"
  /// Totals over the timed runs since reset_timers(); 0 unless timing is on.
  std::int64_t runs = 0;
  double seconds = 0;
  Cost work = {};  ///< operations and bytes at the symbols of each run
  /// Launches that took one of the kernel's fallbacks (cuda::Program::fallback), as they were enqueued or captured;
  /// replays are not counted again.
  std::int64_t fallbacks = 0;
};

/// One launch of a timed run.
struct LaunchTime {
  std::size_t step = 0;           ///< of Executable::steps()
  double start = 0, seconds = 0;  ///< start: since the run's
  Cost work = {};                 ///< at the symbols of the run
};

/// A task of a super-kernel with profile=1 on a thread block, or on a thread of the CPU. Seconds since the first task
/// of the run.
struct TaskTime {
  std::string_view super_kernel;  ///< the graph's
  std::size_t step = 0;           ///< of Executable::steps()
  int block = 0;                  ///< or thread
  double begin = 0, ready = 0;    ///< turned to; what it needs was there
  double end = 0, announced = 0;  ///< computed; and those who wait for it may know
};

/// Which launches of its plan a run makes, to find one that goes wrong.
struct LaunchSelection {
  static constexpr std::size_t all = ~std::size_t{0};
  std::size_t end = all;    ///< those before it
  bool one_by_one = false;  ///< those of super-kernels, too
  std::size_t too_early =
      all;  ///< for tests: a fault, on the CPU. This launch of a super-kernel comes before the one ahead of it

  friend bool operator==(const LaunchSelection&, const LaunchSelection&) = default;
};

class DeviceRegion;

class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Binds memory to an input of the graph; it stays bound until bound again. The view's element type must be the
  /// input's and its shape must fit the input's dimensions when run() gives the symbols: memory may be longer than
  /// needed along a symbolic first dimension, of which a run reads the first rows, so that memory for the maximum is
  /// bound once. Throws Error naming the input.
  void bind(std::string_view input, const TensorView& memory);
  /// Binds memory to a result of the graph, as long as the dense result at the symbols of the runs: it is written
  /// there, and not copied. Null: the arena again. False, and nothing is bound, where the result has no memory of its
  /// own (an input, a constant, a part or a copy of another result). Throws Error where the graph has no such result.
  bool bind_result(std::string_view output, std::byte* memory);
  /// Reads the constants' memory from the store again, the one of the compilation, in which weights were replaced.
  void take_weights(WeightStore& weights);
  /// Runs every step with the given token counts. Allocates nothing. Throws Error when a symbol exceeds its maximum or
  /// an input is unbound. `on`: a stream of the same device; null: the one of the compilation. Runs on several streams
  /// use the same memory: they must not overlap.
  void run(const SymbolValues& symbols, Stream* on = nullptr);
  /// Runs `count` times in a row, each with what the one before left in memory that is bound to inputs. On the CPU
  /// after() is called after each run with its number, and ends the row where it returns false; threads stay in a row
  /// of super-kernels. On a device all runs are enqueued, once captured as one launch of a graph, or of one kernel
  /// where a super-kernel has all launches, and after() is not called.
  void run_row(const SymbolValues& symbols, std::int64_t count, FunctionRef<bool(std::int64_t run)> after);
  /// Result of the last run: a view into the arena (or into state), valid until the next run. Throws Error where that
  /// run failed or there was none.
  TensorView output(std::string_view name) const;
  bool has_output(std::string_view name) const;
  /// The input whose memory a result of the graph is; empty where it is none's.
  std::string_view input_of_output(std::string_view name) const;

  std::int64_t arena_bytes() const;  ///< intermediates and scratch
  std::span<const StepInfo> steps() const;
  /// What the last run launched, in order, and which bytes each launch touched; on a device that computes nothing, what
  /// it would have launched. Valid until the next run. Throws Error where there was no run.
  const Plan& plan();
  /// The plan as runs launch it: where no region is linked, as without marks. Links those that are; null devices, too.
  const Plan& launched_plan();
  /// Which launches of that plan become one, and which marked ones cannot join; null where no node is marked. As
  /// plan().
  const SuperFormation* super_kernels();
  /// A region of those as its launches are dealt out to the blocks of a GPU.
  std::vector<DealtLaunch> dealt_launches(const SuperRegion& region);
  /// Seconds that a region of those is predicted to lose as one launch of a GPU, as the device decides by, but for
  /// registers that spill; below 0: to gain. Nothing on the CPU, and of one launch.
  std::optional<double> predicted_loss(const SuperRegion& region);
  /// Calls between ranks that runs like the last one may make on a stream of their own (CERMET_COMM_BESIDE), beside
  /// launches that need nothing of them.
  std::size_t calls_beside();
  /// Operations and bytes of a step at the symbols of the last run. Of a grouped product, weights of groups that had
  /// rows where the run was timed, else all.
  Cost work(std::size_t step);
  /// With timing, every run notes when each launch started and how long it took; on a device, which is then waited for,
  /// from events between the launches, so that nothing overlaps, and from the run's start on the device.
  void set_timing(bool on);
  void reset_timers();
  /// Launches of the last run in their order, where it was timed; valid until the next run. All times are 0 on a device
  /// that computes nothing.
  std::span<const LaunchTime> last_launches() const;
  std::chrono::steady_clock::time_point last_start() const;  ///< of that run
  /// Tasks of the super-kernels of the last run that have profile=1, block by block. Of a GPU, for which it waits,
  /// where they were launched as one: in a run that was replayed and not timed; the origin is then the first task's
  /// begin rather than last_start(). Empty where there are none.
  std::vector<TaskTime> task_times();
  /// Throws Error where a super-kernel of an earlier run gave up a wait, and names the two launches: what that run
  /// left means nothing. To be called where the run has ended; run() asks, too. Once: later runs are right.
  void check_waits();
  /// What the last run launched as one launch each, where it was replayed.
  std::span<const std::unique_ptr<DeviceRegion>> linked_regions() const;
  /// For the runs from here on, until it is called without one. Such runs are neither captured nor timed; results of
  /// steps that did not run mean nothing.
  void select_launches(const LaunchSelection& selection = {});
  /// Dense copies of what the operands hold in which a step left its results, in the host's memory. Waits for the last
  /// run.
  std::vector<OwnedTensor> step_results(std::size_t step);

 private:
  friend struct Compilation;
  struct State;
  explicit Executable(std::unique_ptr<State> state);
  void resolve(const SymbolValues& symbols, Stream* on);
  std::unique_ptr<State> state_;
};

}  // namespace cermet
