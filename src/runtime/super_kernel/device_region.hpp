// Neighbouring launches of a plan as one launch of a kernel that walks them (kernel/cuda/device/walk.cuh).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/plan.hpp"
#include "graph/super_kernel_options.hpp"
#include "jit/program_store.hpp"
#include "jit/walk.hpp"
#include "runtime/super_kernel/region_watch.hpp"

namespace cermet {

struct DeviceRegionOptions {
  std::int64_t width = 0;       ///< thread blocks; 0: one for each SM
  bool debug_sync_all = false;  ///< a launch waits for all of the one before
  bool prefetch = true;         ///< weights flow while earlier launches compute and wait
  bool early_start = true;      ///< a launch asks for its weights and keys before it waits for what it needs
  bool profile = false;         ///< keeps times of every launch on every block
  double deadline = -1;  ///< seconds without a launch that begins, after which the process ends with an error; 0: none;
                         ///< negative: CERMET_WALK_TIMEOUT
  std::uint64_t patience = 2'000'000'000;  ///< nanoseconds that a wait may take, then the run ends and stuck() says why
};

/// Whether somebody wants a region linked whatever it is predicted to cost: to debug it, to see its times, or to give
/// it fewer blocks.
bool links_at_a_loss(const SuperKernelOptions& options);

/// Whether each launch waits for the one before, whatever it reads.
bool goes_in_turn(const SuperKernelOptions& options);

/// Whether a launch is the first of its step, which stands for all of the step's work.
bool begins_step(const Plan& plan, std::size_t launch);

/// A launch that a region takes.
struct RegionLaunch {
  const cuda::Program* program = nullptr;
  std::string name;         ///< for messages: scope and kernel
  double item_seconds = 0;  ///< modelled, of an item: by it launches that do not need each other are dealt out
};

class DeviceRegion {
 public:
  /// Launches [first, first + launches.size()) of a plan that says what each touches, all of them programs that
  /// declines_walk() takes. Compiles and links what the cache does not have, and writes what the kernel reads to the
  /// device's memory; the stream must not be capturing. Throws Error where the tasks do not fit into one kernel, and as
  /// linking does.
  DeviceRegion(const Plan& plan, std::size_t first, std::span<const RegionLaunch> launches, const DeviceQueue& queue,
               const DeviceRegionOptions& options);

  std::size_t first() const { return first_; }
  std::size_t count() const { return names_.size(); }
  /// The one launch, of `rounds` runs in a row. Launches must follow each other.
  void enqueue(Stream& stream, std::uint32_t rounds = 1) const;
  /// Why an earlier run gave up, once: "super-kernel: block 7 of layers.0.attention gemv.linear waited 2.0 s for ...".
  /// Empty where none did, or where it has not ended.
  std::string take_stuck();
  /// Sets all counters to zero and takes back what items left each other, as before the first run.
  void reset(Stream& stream);
  /// The counter of blocks that have ended a launch, in the device's memory.
  std::byte* counter(std::size_t launch) const;

  const jit::WalkShape& shape() const { return shape_; }
  std::span<const std::string> names() const { return names_; }
  /// As the device has them, but for addresses.
  std::span<const walk::Instance> instances() const { return instances_; }
  /// By block, then by launch: of the last run, where options asked for them. Waits for the stream.
  std::vector<walk::Times> times(Stream& stream) const;
  int registers() const { return loaded_.registers; }
  std::int64_t spilled_bytes() const { return loaded_.local_bytes; }

 private:
  std::size_t first_;
  std::vector<std::string> names_;
  std::vector<walk::Instance> instances_;
  jit::WalkShape shape_;
  LoadedFunction loaded_;
  LaunchShape launch_;
  DeviceBuffer table_, counters_, meeting_, progress_, stuck_, times_;
  walk::Params params_{};
  std::unique_ptr<RegionWatch> watch_;  ///< goes before what it looks at
};

/// Which launches of a region each of its launches needs to have ended, counted from `first`; without those that follow
/// from others, because whoever ends a launch has waited for all that it needs. `all_before`: the one before, whatever
/// it does.
std::vector<std::vector<std::uint32_t>> region_needs(const Plan& plan, std::size_t first, std::size_t count,
                                                     bool all_before = false);
/// Launches that no other needs: whoever has waited for these has waited for all.
std::vector<std::uint32_t> region_ends(const std::vector<std::vector<std::uint32_t>>& needs);

}  // namespace cermet
