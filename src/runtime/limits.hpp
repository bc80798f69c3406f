// Measured limits of any device in one form, and the times that they allow.
#pragma once

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/device_limits.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/limits.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

using MeasuredLimits = std::variant<cpu::Limits, cuda::Limits>;

/// What reports compare with. A multiplication and an addition count as two operations; 0 where a machine has no unit.
struct PeakRates {
  double read_bytes_per_second = 0, f32 = 0, bf16 = 0, int8 = 0;
  double amx_bf16 = 0, amx_int8 = 0;  ///< of AMX tiles

  /// The fastest way to multiply bf16: its own products, or float32 once widened.
  double bf16_products() const { return std::max({amx_bf16, bf16, f32}); }
  /// The faster of the ways to multiply int8; 0 where there is none.
  double int8_products() const { return std::max(amx_int8, int8); }
  void keep_best(const PeakRates& found);
};
PeakRates peak_rates(const cpu::Limits& limits);
PeakRates peak_rates(const cuda::Limits& limits);
PeakRates peak_rates(const MeasuredLimits& limits);

/// Of a CPU, whose other 16-bit and 8-bit types are widened to float32.
DeviceLimits device_limits(const cpu::Limits& limits);
DeviceLimits device_limits(const cuda::Limits& limits);
DeviceLimits device_limits(const MeasuredLimits& limits);

/// The type in which a problem multiplies: that of the weight or of the keys; float32 for operators without a matrix
/// product.
DType product_type(const Problem& problem);

/// What bounds some work: the time to read and write its bytes, and that to compute.
struct ModelledTime {
  double moving = 0, computing = 0;  ///< seconds
  double seconds() const { return moving > computing ? moving : computing; }
  std::string_view bound_by() const { return computing > moving ? "arithmetic" : "bandwidth"; }
};
ModelledTime modelled_time(const Problem& problem, const Cost& work, const DeviceLimits& limits);

}  // namespace cermet
