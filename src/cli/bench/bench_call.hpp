// One operator call to measure, on the CPU or on a device: what `bench op` and `bench suite` share.
#pragma once

#include <string>
#include <vector>

#include "cli/ui/console.hpp"
#include "device/replay_timer.hpp"
#include "runtime/context.hpp"
#include "select/select.hpp"
#include "select/tune/operands.hpp"

namespace cermet::cli {

struct BenchCall {
  std::string op, shape;  ///< an operator's name and its operands; or a region's text and nothing
  std::string constants, kernel,
      config;  ///< empty: constants that a kernel would prepack, the kernel and configuration that selection chooses
  OperandValues values;
  std::int64_t tokens = 512;  ///< value of a symbolic dimension
  bool cold = false;
  double seconds = 0.5;
};

/// Where calls run: on the CPU, or on a device. Throws Error where the device does not compute.
Context bench_context(const std::string& device, int threads);

/// A call with its kernel and configuration. The region has no symbols.
struct BoundCall {
  Region region;
  Choice choice;
};
BoundCall bind_call(const BenchCall& call, Context& context);

struct MeasuredCall {
  ReplayTimes times;           ///< on the CPU of runs, each of one launch
  std::int64_t copies = 0;     ///< sets of operands and results used in turn
  std::int64_t fallbacks = 0;  ///< launches that the kernel's own programs did not take
  Cost work = {};

  double bytes_per_second() const { return work.bytes / times.median_seconds; }
  double operations_per_second() const { return work.operations / times.median_seconds; }
};
MeasuredCall measure_call(const BenchCall& call, const BoundCall& bound, Context& context);
/// Keys: problem, kernel, times, work and rates, and where it ran.
Json json_of(const MeasuredCall& measured, const BoundCall& bound, const Context& context);
std::string text_of(const MeasuredCall& measured, const BoundCall& bound, const Context& context);

}  // namespace cermet::cli
