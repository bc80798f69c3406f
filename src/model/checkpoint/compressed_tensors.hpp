// The descriptor of the compressed-tensors formats: `quantization_config` in config.json. Format:
// https://github.com/vllm-project/compressed-tensors; docs/formats.md lists what is read and written.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/linear_modules.hpp"

namespace cermet {

/// Reads formats int-quantized, float-quantized, naive-quantized, pack-quantized and dense, of 8 bits and symmetric,
/// weights per-channel or per-tensor, inputs unquantized, dynamic, or static; what is absent has the package's
/// defaults. Throws Error naming the field that asks for anything else.
Quantization read_compressed_tensors(Json root, const ModelConfig& config);

/// Whether a module's int8 values are written packed: those of experts, which transformers 5 reads in no other form.
/// Its columns must be a multiple of 4.
bool is_written_packed(const LinearModule& module, const SchemeMap& schemes);

/// What stands under "quantization_config": a group for each scheme and form, and the modules that stay in 16 bit under
/// "ignore". Throws Error(invalid_argument) where nothing is quantized.
JsonValue compressed_tensors_config(std::span<const LinearModule> modules, const SchemeMap& schemes,
                                    bool pack_experts = true);

/// Patterns ("re:...") that match exactly the modules of `scheme` among `modules`; numbers are left open where all
/// modules that differ by them agree.
std::vector<std::string> target_patterns(std::span<const LinearModule> modules, const SchemeMap& schemes,
                                         const LinearScheme& scheme);

}  // namespace cermet
