#include "runtime/limits.hpp"

namespace cermet {

DeviceLimits DeviceLimits::of(const cpu::Limits& l) { return {l.read_bytes_per_second, l.f32_flops, l.f32_flops, l.bf16_products(), l.f32_flops, l.int8_ops}; }

DeviceLimits DeviceLimits::of(const cuda::Limits& l) {
  return {l.read_bytes_per_second(),    l.f32_operations_per_second, l.f16_operations_per_second,
          l.bf16_operations_per_second, l.f8_operations_per_second,  l.i8_operations_per_second};
}

double DeviceLimits::operations_per_second(DType operand) const {
  switch (operand) {
    case DType::f16: return f16_operations_per_second;
    case DType::bf16: return bf16_operations_per_second;
    case DType::f8_e4m3:
    case DType::f8_e5m2: return f8_operations_per_second;
    case DType::i8: return i8_operations_per_second;
    default: return f32_operations_per_second;
  }
}

DType product_type(const Problem& problem) {
  const std::string_view category = problem.op->category;
  const bool multiplies = category == "Linear algebra" || category == "Attention and cache";
  return multiplies && problem.has(1) ? problem.input(1).dtype : DType::f32;
}

ModelledTime modelled_time(const Problem& problem, const Cost& work, const DeviceLimits& limits) {
  const double peak = limits.operations_per_second(product_type(problem));
  return {limits.read_bytes_per_second > 0 ? work.bytes / limits.read_bytes_per_second : 0, peak > 0 ? work.operations / peak : 0};
}

}  // namespace cermet
