// The descriptor of the compressed-tensors formats: `quantization_config` in config.json. Format: https://github.com/vllm-project/compressed-tensors;
// docs/formats.md lists what is written.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/json_value.hpp"
#include "model/linear_modules.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

/// Schemes by module; modules that are not here stay as they are.
using SchemeMap = std::unordered_map<std::string, LinearScheme>;

/// What stands under "quantization_config": a group for each scheme, and the modules that stay in 16 bit under "ignore". Throws Error(invalid_argument) where
/// nothing is quantized.
JsonValue compressed_tensors_config(std::span<const LinearModule> modules, const SchemeMap& schemes);

/// Patterns ("re:...") that match exactly the modules of `scheme` among `modules`; numbers are left open where all modules that differ by them agree.
std::vector<std::string> target_patterns(std::span<const LinearModule> modules, const SchemeMap& schemes, const LinearScheme& scheme);

}  // namespace cermet
