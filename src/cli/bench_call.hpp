// One operator call to measure, on the CPU or on a device: what `bench op` and `bench suite` share.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_operands.hpp"
#include "cli/console.hpp"
#include "jit/program_store.hpp"
#include "select/select.hpp"

namespace cermet::cli {

struct BenchCall {
  std::string op, shape, constants, kernel, config;  ///< empty: constants that a kernel would prepack, the kernel and configuration that selection chooses
  OperandValues values;
  std::int64_t tokens = 512;  ///< value of a symbolic dimension
  bool cold = false;
  double seconds = 0.5;
};

/// Where calls run: on the CPU, or on a device.
class BenchMachine {
 public:
  /// Throws Error where the device does not compute.
  BenchMachine(const std::string& device, int threads);
  ThreadPool& pool() { return pool_; }
  Device* device() { return device_.get(); }  ///< null for the CPU
  DeviceQueue queue() { return {device_.get(), stream_.get(), programs_ ? &*programs_ : nullptr}; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::optional<ProgramStore> programs_;
};

/// A call with its kernel and configuration. The problem has no symbols.
struct BoundCall {
  Problem problem;
  Choice choice;
};
BoundCall bind_call(const BenchCall& call, BenchMachine& machine);

/// Measures a call. Keys: problem, kernel, times, work and rates, and where it ran.
Json measure_call(const BenchCall& call, const BoundCall& bound, BenchMachine& machine);
/// The same result as text.
std::string measured_text(const Json& result);

}  // namespace cermet::cli
