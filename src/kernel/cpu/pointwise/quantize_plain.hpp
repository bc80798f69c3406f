// quantize and dequantize in the forms that no vectors are written for: scales that broadcast, zero points of narrow
// integers, 16-bit quantized values.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

bool is_plain_quantize(const Problem& problem);
bool is_plain_dequantize(const Problem& problem);
Launcher bind_plain_quantize(const Problem& problem);
Launcher bind_plain_dequantize(const Problem& problem);

}  // namespace cermet::cpu
