#include "base/device_limits.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/target.hpp"

namespace cermet {
namespace {

/// A GPU as its data sheet and the tuning guide of its architecture give it; rates of units are for an SM and a cycle.
struct Sheet {
  int compute_capability;
  const char* gpu;
  double clock_hz, read_bytes_per_second;
  int multiprocessors;
  double cache_bytes, f32, f16, bf16, f8, i8;
};

constexpr Sheet sheets[] = {
    {75, "T4", 1.35e9, 0.32e12, 40, 32, 128, 1024, 0, 0, 2048},
    {80, "A100 80GB", 1.41e9, 2.04e12, 108, 64, 128, 2048, 2048, 0, 4096},
    {86, "A10", 1.5e9, 0.6e12, 72, 32, 256, 1024, 1024, 0, 2048},
    {89, "L40S", 2.2e9, 0.86e12, 142, 32, 256, 1024, 1024, 2048, 2048},
    // Under load an H200 runs at 1.755 GHz, moves 95 % of the 4.8 TB/s that its sheet names, and every SM gets 45 bytes
    // a cycle from the L2 where all ask.
    {90, "H200", 1.755e9, 4.563e12, 132, 45, 256, 4096, 4096, 8192, 8192},
    {100, "B200", 1.85e9, 7.6e12, 148, 45, 256, 8192, 8192, 16384, 16384},
};

/// One core of about 3 GHz with 256-bit vectors and its share of a server's memory bandwidth.
DeviceLimits of_core() {
  return {.source = "assumed for one core",
          .clock_hz = 3e9,
          .read_bytes_per_second = 10e9,
          .cache_bytes_per_second = 40e9,
          .launch_seconds = 1e-6,
          .f32_operations_per_second = 96e9,
          .f16_operations_per_second = 0,
          .bf16_operations_per_second = 0,
          .f8_operations_per_second = 0,
          .i8_operations_per_second = 0};
}

/// Limits without a measurement (no program for them, or an older file) come from the data sheet.
DeviceLimits completed(DeviceLimits measured, const DeviceLimits& sheet) {
  std::size_t missing = 0;
  for (double DeviceLimits::*figure :
       {&DeviceLimits::clock_hz, &DeviceLimits::read_bytes_per_second, &DeviceLimits::cache_bytes_per_second,
        &DeviceLimits::launch_seconds, &DeviceLimits::f32_operations_per_second,
        &DeviceLimits::f16_operations_per_second, &DeviceLimits::bf16_operations_per_second,
        &DeviceLimits::f8_operations_per_second, &DeviceLimits::i8_operations_per_second})
    if (measured.*figure == 0 && sheet.*figure > 0) measured.*figure = sheet.*figure, ++missing;
  if (missing > 0) measured.source = fmt::format("{}; the rest from the {}", measured.source, sheet.source);
  return measured;
}

DeviceLimits sheet_of(const Target& target) {
  const Sheet* sheet = &sheets[0];
  for (const Sheet& s : sheets)
    if (s.compute_capability <= target.compute_capability) sheet = &s;
  const double cycles = sheet->clock_hz * std::max(1, target.multiprocessors);
  return {.source = fmt::format("data sheet of {}", sheet->gpu),
          .clock_hz = sheet->clock_hz,
          .read_bytes_per_second =
              sheet->read_bytes_per_second * std::max(1, target.multiprocessors) / sheet->multiprocessors,
          .cache_bytes_per_second = sheet->cache_bytes * cycles,
          .launch_seconds = 1e-6,
          .f32_operations_per_second = sheet->f32 * cycles,
          .f16_operations_per_second = sheet->f16 * cycles,
          .bf16_operations_per_second = sheet->bf16 * cycles,
          .f8_operations_per_second = sheet->f8 * cycles,
          .i8_operations_per_second = sheet->i8 * cycles};
}

}  // namespace

double DeviceLimits::operations_per_second(DType operand) const {
  double rate = 0;
  switch (operand) {
    case DType::f16: rate = f16_operations_per_second; break;
    case DType::bf16: rate = bf16_operations_per_second; break;
    case DType::f8_e4m3:
    case DType::f8_e5m2: rate = f8_operations_per_second; break;
    case DType::i8: rate = i8_operations_per_second; break;
    default: break;
  }
  return rate > 0 ? rate : f32_operations_per_second;
}

DeviceLimits limits_of(const Target* target) {
  if (!target) return of_core();
  const DeviceLimits sheet = sheet_of(*target);
  return target->measured ? completed(*target->measured, sheet) : sheet;
}

}  // namespace cermet
