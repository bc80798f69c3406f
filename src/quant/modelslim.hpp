// The Ascend ModelSlim descriptor: `quant_model_description.json` beside `quant_model_weights.safetensors`, and what its tensors hold in place of
// compressed-tensors' ones. docs/formats.md lists both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/json_value.hpp"
#include "model/checkpoint/checkpoint_files.hpp"
#include "quant/compressed_tensors.hpp"

namespace cermet {

inline constexpr const char* modelslim_description_file = "quant_model_description.json";
inline constexpr const char* modelslim_stem = "quant_model_weights";

/// Throws Error(unsupported) naming the first module whose scheme the descriptor cannot express: fp8.
void require_modelslim_schemes(std::span<const LinearModule> modules, const SchemeMap& schemes);

/// Tensors as compressed-tensors names them, turned into ModelSlim's. Quantized values and scales stay unchanged; with
/// a static input scale, deq_scale is the product of input_scale and weight_scale in float32 and a bias becomes
/// quant_bias, counted in deq_scale. Values that could not be recovered are refused by name, or rounded and reported in
/// `rounded` where that is not null.
std::vector<OutputTensor> to_modelslim(const std::vector<OutputTensor>& tensors, std::span<const LinearModule> modules, const SchemeMap& schemes,
                                       std::vector<std::string>* rounded = nullptr);
/// The inverse. weight_scale is the quotient of deq_scale and input_scale, in `dtype` where its product gives deq_scale again, in float32 where only that does.
/// Throws Error(unsupported) naming the tensor where none does, or where an offset is not 0.
std::vector<OutputTensor> from_modelslim(const std::vector<OutputTensor>& tensors, std::span<const LinearModule> modules, const SchemeMap& schemes,
                                         DType dtype);

/// quant_model_description.json: FLOAT, W8A8, W8A8_DYNAMIC or W8A16 for every tensor.
JsonValue modelslim_description(const std::vector<OutputTensor>& tensors, const SchemeMap& schemes);

}  // namespace cermet
