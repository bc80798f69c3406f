// What a device can do at most: the figures that models of kernels' costs are made of. Measured ones where somebody
// measured, else a data sheet's.
#pragma once

#include <string>

#include "base/dtype.hpp"

namespace cermet {

struct Target;

/// Rates of the whole device. A multiplication and an addition count as two operations; 0 where it has no such unit.
struct DeviceLimits {
  std::string source;                 ///< where the figures are from: "measured", "data sheet of ..."
  double clock_hz = 0;                ///< of the cores under load
  double read_bytes_per_second = 0;   ///< from memory that no cache holds
  double cache_bytes_per_second = 0;  ///< from the last cache that all cores share
  double launch_seconds = 0;          ///< between the starts of dependent launches
  double f32_operations_per_second = 0;
  double f16_operations_per_second = 0;
  double bf16_operations_per_second = 0;
  double f8_operations_per_second = 0;
  double i8_operations_per_second = 0;

  /// Products of operands of this type; float32's rate for every type without a rate of its own.
  double operations_per_second(DType operand) const;
};

/// The target's measured limits; where there are none, those of the data sheet of a GPU of its architecture, in
/// proportion to its SMs. Null: a CPU of one core.
DeviceLimits limits_of(const Target* target);

}  // namespace cermet
