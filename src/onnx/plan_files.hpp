// Names of what is in a plan's folder, and how its head writes types and sizes.
#pragma once

#include <string>

#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "onnx/sizes.hpp"
#include "runtime/context.hpp"

namespace cermet::onnx::plan_files {

inline constexpr int version = 1;
inline constexpr const char *head = "plan.json", *graph = "graph.txt", *weights = "weights.bin", *kernels = "kernels";

/// What a plan is compiled for: an architecture, or the CPU, whose kernels are part of the library.
inline std::string device_kind(const Context& context) {
  return context.target() ? context.target()->architecture() : "cpu";
}

DType dtype_in(const Json& field);
/// {"dtype": "i64", "shape": ["T"], "first": "0", "step": 1}, or with "elements" in place of the last two.
JsonValue written(const SizeTensor& tensor);
SizeTensor read_size_tensor(const Json& field);

}  // namespace cermet::onnx::plan_files
