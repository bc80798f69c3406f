// One operator call to measure, on the CPU or on a device: what `bench op` and `bench suite` share.
#pragma once

#include <string>
#include <vector>

#include "cli/ui/console.hpp"
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

/// Measures a call. Keys: problem, kernel, times, work and rates, and where it ran.
Json measure_call(const BenchCall& call, const BoundCall& bound, Context& context);
/// The same result as text.
std::string measured_text(const Json& result);

}  // namespace cermet::cli
