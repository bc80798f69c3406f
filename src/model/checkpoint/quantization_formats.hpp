// The formats in which checkpoints state how they are quantized.
#pragma once

#include "io/json_file.hpp"
#include "model/checkpoint/quantization.hpp"

namespace cermet {

/// config.json's quantization_config as the compressed-tensors package writes it: formats int-quantized,
/// float-quantized and naive-quantized, of 8 bits and symmetric, weights per-channel or per-tensor, inputs unquantized,
/// dynamic per-token, or static. Throws Error naming the field that asks for anything else.
Quantization read_compressed_tensors(Json root, const ModelConfig& config);

/// ModelSlim's descriptor, which gives every tensor's kind: FLOAT, W8A8 (static), W8A8_DYNAMIC or W8A16. Throws Error naming the tensor of another kind.
Quantization read_modelslim(Json root, const ModelConfig& config);

}  // namespace cermet
