#include "cli/bench/device_limits.hpp"

#include "cli/ui/interrupt.hpp"

namespace cermet::cli {

cuda::Limits measure_device_limits(Context& context, double seconds) {
  return context.measure_gpu_limits(seconds, stop_if_interrupted);
}

MeasuredLimits measure_machine(Context& context, double gpu_seconds, double cpu_seconds) {
  return context.measure_machine(context.target() ? gpu_seconds : cpu_seconds, stop_if_interrupted);
}

Json limits_json(const cuda::Limits& limits, const Device& device) {
  Json reads = Json::array();
  for (const cuda::ReadTime& read : limits.reads)
    reads.push_back({{"bytes", read.bytes},
                     {"seconds", read.seconds},
                     {"bytes_per_second", static_cast<double>(read.bytes) / read.seconds}});
  return {{"device", device.name()},
          {"read_bytes_per_second", limits.read_bytes_per_second()},
          {"bulk_load_bytes_per_second", limits.bulk_load_bytes_per_second},
          {"load_bytes_per_second", limits.load_bytes_per_second},
          {"copy_bytes_per_second", limits.copy_bytes_per_second},
          {"stream_bytes", limits.stream_bytes},
          {"reads", reads},
          {"stream_launch_seconds", limits.stream_launch_seconds},
          {"graph_node_seconds", limits.graph_node_seconds},
          {"overlapped_graph_node_seconds", limits.overlapped_node_seconds},
          {"f32_operations_per_second", limits.f32_operations_per_second},
          {"f16_operations_per_second", limits.f16_operations_per_second},
          {"bf16_operations_per_second", limits.bf16_operations_per_second},
          {"f8_operations_per_second", limits.f8_operations_per_second},
          {"int8_operations_per_second", limits.i8_operations_per_second}};
}

Json limits_json(const PeakRates& rates) {
  return {{"read_bytes_per_second", rates.read_bytes_per_second},
          {"f32_operations_per_second", rates.f32},
          {"bf16_operations_per_second", rates.bf16},
          {"int8_operations_per_second", rates.int8},
          {"amx_bf16_operations_per_second", rates.amx_bf16},
          {"amx_int8_operations_per_second", rates.amx_int8}};
}

Json limits_json(const MeasuredLimits& limits, const Device& device) {
  const auto* const gpu = std::get_if<cuda::Limits>(&limits);
  return gpu ? limits_json(*gpu, device) : limits_json(peak_rates(limits));
}

std::string limits_table(const cuda::Limits& limits) {
  const auto bandwidth = [](double rate) { return fmt::format("{:.2f} TB/s", rate * 1e-12); };
  const auto peak = [](double rate, std::string_view unit) {
    return rate == 0 ? "no unit for it" : fmt::format("{:.1f} {}", rate * 1e-12, unit);
  };
  const auto microseconds = [](double seconds) { return fmt::format("{:.2f} us", seconds * 1e6); };
  Table table;
  table.row(
      {"read", fmt::format("{} over {}: bulk copies {}, 16-byte loads {}", bandwidth(limits.read_bytes_per_second()),
                           bytes_text(static_cast<double>(limits.stream_bytes)),
                           bandwidth(limits.bulk_load_bytes_per_second), bandwidth(limits.load_bytes_per_second))});
  for (const cuda::ReadTime& read : limits.reads)
    table.row(
        {"read " + bytes_text(static_cast<double>(read.bytes)),
         fmt::format("{}, {}", microseconds(read.seconds), bandwidth(static_cast<double>(read.bytes) / read.seconds))});
  table.row({"copy", bandwidth(limits.copy_bytes_per_second) + " read and written"});
  table.row({"launch", fmt::format("{} on a stream, {} in a graph, {} in a graph where launches overlap",
                                   microseconds(limits.stream_launch_seconds), microseconds(limits.graph_node_seconds),
                                   microseconds(limits.overlapped_node_seconds))});
  table.row({"f32 peak", peak(limits.f32_operations_per_second, "TFLOP/s")});
  table.row({"f16 peak", peak(limits.f16_operations_per_second, "TFLOP/s")});
  table.row({"bf16 peak", peak(limits.bf16_operations_per_second, "TFLOP/s")});
  table.row({"fp8 peak", peak(limits.f8_operations_per_second, "TFLOP/s")});
  table.row({"int8 peak", peak(limits.i8_operations_per_second, "TOP/s")});
  return table.to_string();
}

}  // namespace cermet::cli
