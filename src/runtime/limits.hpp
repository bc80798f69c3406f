// What a device can do at most, whatever its kind: what modelled times are made of.
#pragma once

#include <string_view>

#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/limits.hpp"
#include "op/operator.hpp"

namespace cermet {

/// As measured; 0 where the device has no such unit. A multiplication and an addition count as two operations.
struct DeviceLimits {
  double read_bytes_per_second = 0;
  double f32_operations_per_second = 0, f16_operations_per_second = 0, bf16_operations_per_second = 0, f8_operations_per_second = 0,
         i8_operations_per_second = 0;

  /// Of a CPU, whose other 16-bit and 8-bit types are widened to float32.
  static DeviceLimits of(const cpu::Limits& limits);
  static DeviceLimits of(const cuda::Limits& limits);
  /// Peak of products of this type; of float32 for every other type.
  double operations_per_second(DType operand) const;
};

/// The type in which a problem multiplies: that of the weight or of the keys; float32 for operators without a matrix product.
DType product_type(const Problem& problem);

/// What bounds some work: the time to read and write its bytes, and that to compute.
struct ModelledTime {
  double moving = 0, computing = 0;  ///< seconds
  double seconds() const { return moving > computing ? moving : computing; }
  std::string_view bound_by() const { return computing > moving ? "arithmetic" : "bandwidth"; }
};
ModelledTime modelled_time(const Problem& problem, const Cost& work, const DeviceLimits& limits);

}  // namespace cermet
