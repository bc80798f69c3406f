// What the scales of a quantized checkpoint say, checked before anything computes with them.
#pragma once

#include "model/checkpoint/checkpoint.hpp"

namespace cermet {

/// The checkpoint's quantization with its input offsets. Reads every scale and offset, no weight. Throws Error naming
/// the tensor where a scale is not finite and above 0, where symmetric quantization has a zero point, and where modules
/// that share an input have several input scales.
Quantization checked_quantization(const Checkpoint& checkpoint);

}  // namespace cermet
