// Neighbouring launches of a plan as one launch of a kernel that walks them (kernel/cuda/device/walk.cuh).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/plan.hpp"
#include "jit/program_store.hpp"
#include "jit/walk.hpp"

namespace cermet {

struct DeviceRegionOptions {
  std::int32_t prefetch_bytes = 0;     ///< of the next product's weights, which each block asks the L2 for while it computes; 0: none
  int most_stages = 16;                ///< of the ring of weights
  int stage_bytes = 0, in_flight = 0;
  bool profile = false;                ///< keeps times of every instance on every block
  std::uint64_t patience = 2'000'000'000;  ///< nanoseconds that a wait may take, then the kernel ends with an error
};

/// A launch that a region takes, or why it does not.
struct RegionLaunch {
  const cuda::Program* program = nullptr;
  std::string name;  ///< for messages: scope and kernel
};

class DeviceRegion {
 public:
  /// Launches [first, first + launches.size()) of a plan that says what each touches, all of them programs that declines_walk() takes. Compiles and links what
  /// the cache does not have, and writes what the kernel reads to the device's memory; the stream must not be capturing. Throws Error where the tasks do not fit
  /// into one kernel, and as linking does.
  DeviceRegion(const Plan& plan, std::size_t first, std::span<const RegionLaunch> launches, const DeviceQueue& queue, const DeviceRegionOptions& options);

  std::size_t first() const { return first_; }
  std::size_t count() const { return names_.size(); }
  /// The one launch. Its runs must follow each other.
  void enqueue(Stream& stream) const;
  /// "layers.0.attention gemv.linear waited 2 s for ...: 131 of 132 blocks": why the last run gave up; empty where none did.
  std::string stuck() const;

  const jit::WalkShape& shape() const { return shape_; }
  std::span<const std::string> names() const { return names_; }
  /// By block, then by launch: of the last run, where options asked for them. Waits for the stream.
  std::vector<walk::Times> times(Stream& stream) const;
  int registers() const { return loaded_.registers; }
  std::int64_t spilled_bytes() const { return loaded_.local_bytes; }

 private:
  std::size_t first_;
  std::vector<std::string> names_;
  jit::WalkShape shape_;
  LoadedFunction loaded_;
  LaunchShape launch_;
  DeviceBuffer table_, counters_, stuck_, times_;
  walk::Params params_{};
};

/// The numbers of launches, from `first` on, that each launch of a region needs to have ended, without those that follow from others.
std::vector<std::vector<std::uint32_t>> region_needs(const Plan& plan, std::size_t first, std::size_t count);

}  // namespace cermet
