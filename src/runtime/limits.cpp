#include "runtime/limits.hpp"

#include "op/schema/operator.hpp"

namespace cermet {

void PeakRates::keep_best(const PeakRates& found) {
  for (double PeakRates::*const rate : {&PeakRates::read_bytes_per_second, &PeakRates::f32, &PeakRates::bf16,
                                        &PeakRates::int8, &PeakRates::amx_bf16, &PeakRates::amx_int8})
    this->*rate = std::max(this->*rate, found.*rate);
}

PeakRates peak_rates(const cpu::Limits& l) {
  return {l.read_bytes_per_second, l.f32_flops, l.bf16_flops, l.int8_ops, l.amx_bf16_flops, l.amx_int8_ops};
}

PeakRates peak_rates(const cuda::Limits& l) {
  return {l.read_bytes_per_second(), l.f32_operations_per_second, l.bf16_operations_per_second,
          l.i8_operations_per_second};
}

PeakRates peak_rates(const MeasuredLimits& limits) {
  return std::visit([](const auto& l) { return peak_rates(l); }, limits);
}

DeviceLimits device_limits(const cpu::Limits& l) {
  return {.source = "measured",
          .read_bytes_per_second = l.read_bytes_per_second,
          .f32_operations_per_second = l.f32_flops,
          .f16_operations_per_second = l.f32_flops,
          .bf16_operations_per_second = peak_rates(l).bf16_products(),
          .f8_operations_per_second = l.f32_flops,
          .i8_operations_per_second = peak_rates(l).int8_products()};
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

DeviceLimits device_limits(const MeasuredLimits& limits) {
  return std::visit([](const auto& l) { return device_limits(l); }, limits);
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
