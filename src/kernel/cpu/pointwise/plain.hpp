// Elementwise operators on the element types that no vectors are written for: f64 and the integers other than i32 and
// i64.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Whether operands of this type are computed element by element.
bool is_plain(DType dtype);
/// Of an elementwise operator whose first operand has such a type.
Launcher bind_plain(const Problem& problem);

}  // namespace cermet::cpu
