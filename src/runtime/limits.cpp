#include "runtime/limits.hpp"

#include "op/schema/operator.hpp"

namespace cermet {

DeviceLimits device_limits(const cpu::Limits& l) {
  return {.source = "measured",
          .read_bytes_per_second = l.read_bytes_per_second,
          .f32_operations_per_second = l.f32_flops,
          .f16_operations_per_second = l.f32_flops,
          .bf16_operations_per_second = l.bf16_products(),
          .f8_operations_per_second = l.f32_flops,
          .i8_operations_per_second = l.int8_products()};
}

DeviceLimits device_limits(const cuda::Limits& l) {
  return {.source = "measured",
          .read_bytes_per_second = l.read_bytes_per_second(),
          .launch_seconds = l.graph_node_seconds,
          .f32_operations_per_second = l.f32_operations_per_second,
          .f16_operations_per_second = l.f16_operations_per_second,
          .bf16_operations_per_second = l.bf16_operations_per_second,
          .f8_operations_per_second = l.f8_operations_per_second,
          .i8_operations_per_second = l.i8_operations_per_second};
}

DType product_type(const Problem& problem) {
  const std::string_view category = definition(problem).category;
  const bool multiplies = category == "Linear algebra" || category == "Attention and cache";
  return multiplies && problem.has(1) ? problem.input(1).dtype : DType::f32;
}

ModelledTime modelled_time(const Problem& problem, const Cost& work, const DeviceLimits& limits) {
  const double peak = limits.operations_per_second(product_type(problem));
  return {limits.read_bytes_per_second > 0 ? work.bytes / limits.read_bytes_per_second : 0,
          peak > 0 ? work.operations / peak : 0};
}

}  // namespace cermet
