// Measured limits of any device in one form, and the times that they allow.
#pragma once

#include <string_view>

#include "base/device_limits.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/limits.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// Of a CPU, whose other 16-bit and 8-bit types are widened to float32.
DeviceLimits device_limits(const cpu::Limits& limits);
DeviceLimits device_limits(const cuda::Limits& limits);

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
