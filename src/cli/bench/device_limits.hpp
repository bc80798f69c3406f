// A device's limits for verbs that print them or divide by them.
#pragma once

#include <string>

#include "cli/ui/console.hpp"
#include "runtime/context.hpp"

namespace cermet::cli {

/// Compiles what is needed and measures, `seconds` for each figure at least. Throws Error where the device does not
/// compute.
cuda::Limits measure_device_limits(Context& context, double seconds);
/// The same of a CPU or a GPU.
MeasuredLimits measure_machine(Context& context, double gpu_seconds = 0.05, double cpu_seconds = 0.3);
Json limits_json(const cuda::Limits& limits, const Device& device);
/// Of a CPU or a GPU, under the same keys.
Json limits_json(const PeakRates& rates);
Json limits_json(const MeasuredLimits& limits, const Device& device);
std::string limits_table(const cuda::Limits& limits);

}  // namespace cermet::cli
