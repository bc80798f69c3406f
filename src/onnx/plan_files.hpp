// Names of what is in a plan's folder.
#pragma once

#include <string>

#include "runtime/context.hpp"

namespace cermet::onnx::plan_files {

inline constexpr int version = 1;
inline constexpr const char *head = "plan.json", *graph = "graph.txt", *weights = "weights.bin", *kernels = "kernels";

/// What a plan is compiled for: an architecture, or the CPU, whose kernels are part of the library.
inline std::string device_kind(const Context& context) { return context.target() ? context.target()->architecture() : "cpu"; }

}  // namespace cermet::onnx::plan_files
