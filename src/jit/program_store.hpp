// Programs compiled and loaded on one device: each only once.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet {

/// Cost of compiling for a device.
struct ProgramReport {
  std::int64_t compiled = 0, from_cache = 0;
  double seconds = 0;  ///< wall clock
};

class ProgramStore {
 public:
  explicit ProgramStore(Device& device) : device_(&device) {}
  /// Compiles those of the programs that are not held yet, in parallel, and loads them. Throws Error with the
  /// compiler's log.
  ProgramReport prepare(std::span<const cuda::Program> programs);
  /// The programs in order; prepares what is missing.
  std::vector<cuda::LoadedProgram> get(std::span<const cuda::Program> programs);
  Device& device() const { return *device_; }

 private:
  Device* device_;
  std::mutex mutex_;
  std::map<cuda::Program, cuda::LoadedProgram> held_;
};

/// Where launches of a device go; all null for the CPU.
struct DeviceQueue {
  Device* device = nullptr;
  Stream* stream = nullptr;
  ProgramStore* programs = nullptr;
};

}  // namespace cermet
