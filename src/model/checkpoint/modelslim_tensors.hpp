// What a ModelSlim checkpoint holds in place of the tensors that compressed-tensors has: `deq_scale`, `quant_bias` and
// offsets. docs/formats.md lists both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint_files.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/linear_modules.hpp"

namespace cermet {

/// Tensors as compressed-tensors names them, turned into ModelSlim's. Quantized values and scales stay unchanged; with
/// a static input scale, deq_scale is the product of input_scale and weight_scale in float32 and a bias becomes
/// quant_bias, counted in deq_scale. Values that could not be recovered are refused by name, or rounded and reported in
/// `rounded` where that is not null.
std::vector<OutputTensor> to_modelslim(const std::vector<OutputTensor>& tensors, std::span<const LinearModule> modules,
                                       const SchemeMap& schemes, std::vector<std::string>* rounded = nullptr);
/// The inverse. weight_scale is the quotient of deq_scale and input_scale, in `dtype` where its product gives deq_scale
/// again, in float32 where only that does. Throws Error(unsupported) naming the tensor where none does, or where an
/// offset is not 0.
std::vector<OutputTensor> from_modelslim(const std::vector<OutputTensor>& tensors,
                                         std::span<const LinearModule> modules, const SchemeMap& schemes, DType dtype);

}  // namespace cermet
