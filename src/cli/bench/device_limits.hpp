// A device's limits for verbs that print them or divide by them.
#pragma once

#include <string>

#include "cli/ui/console.hpp"
#include "runtime/context.hpp"

namespace cermet::cli {

/// Compiles what is needed and measures, `seconds` for each figure at least. Throws Error where the device does not
/// compute.
cuda::Limits measure_device_limits(Context& context, double seconds);
Json limits_json(const cuda::Limits& limits, const Device& device);
/// The limits of a CPU, under the same keys.
Json limits_json(const cpu::Limits& limits);
std::string limits_table(const cuda::Limits& limits);

}  // namespace cermet::cli
