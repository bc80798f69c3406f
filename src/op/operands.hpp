// Operands by name: op::rope_and_cache::k_scale is the index of the operand that the schema of rope_and_cache calls
// k_scale. A test holds the rows to the schemas.
#pragma once

#include <cstddef>

namespace cermet::op {

#define OPERANDS(name, ...)                   \
  namespace name {                            \
  enum Operand : std::size_t { __VA_ARGS__ }; \
  }
#include "op/operands.inc"
#undef OPERANDS

}  // namespace cermet::op
