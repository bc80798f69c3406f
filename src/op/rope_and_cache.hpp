// Operands of rope_and_cache by their numbers in the schema.
#pragma once

#include <cstddef>

namespace cermet::rope_and_cache_operands {

// clang-format off
enum Operand : std::size_t {
  q, k, v, cos, sin, positions, k_cache, v_cache, slots, q_weight, k_weight, k_scale, v_scale
};
// clang-format on

}  // namespace cermet::rope_and_cache_operands
