// Properties of a device that kernel selection and code depend on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/device_limits.hpp"

namespace cermet {

struct Target {
  std::string name;            ///< "NVIDIA H200"
  int compute_capability = 0;  ///< 75, 80, 86, 89, 90, 100: major * 10 + minor
  int multiprocessors = 0;
  std::int64_t shared_bytes = 0;  ///< maximum shared memory of a thread block
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  bool compact_weights =
      false;  ///< kernels may hold weights in 12 bits beside bf16 ones: EngineOptions::compact_weights
  std::shared_ptr<const DeviceLimits> measured = {};  ///< null: not measured; see limits_of()

  /// "sm_90a": what kernels are compiled for. Hopper and later take the architecture's own instructions.
  std::string architecture() const {
    return "sm_" + std::to_string(compute_capability) + (compute_capability >= 90 ? "a" : "");
  }
};

}  // namespace cermet
