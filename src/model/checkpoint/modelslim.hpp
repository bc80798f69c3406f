// The Ascend ModelSlim descriptor: `quant_model_description.json`, which gives every tensor's kind: FLOAT, W8A8
// (static), W8A8_DYNAMIC or W8A16. docs/formats.md has the details.
#pragma once

#include <span>
#include <vector>

#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "model/checkpoint/checkpoint_files.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/linear_modules.hpp"

namespace cermet {

inline constexpr const char* modelslim_description_file = "quant_model_description.json";
inline constexpr const char* modelslim_stem = "quant_model_weights";

/// Throws Error naming the tensor of another kind.
Quantization read_modelslim(Json root, const ModelConfig& config);

/// Throws Error(unsupported) naming the first module whose scheme the descriptor cannot express: fp8.
void require_modelslim_schemes(std::span<const LinearModule> modules, const SchemeMap& schemes);
/// What the descriptor says of these tensors.
JsonValue modelslim_description(const std::vector<OutputTensor>& tensors, const SchemeMap& schemes);

}  // namespace cermet
