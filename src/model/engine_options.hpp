// The options of an engine by name.
#pragma once

#include "base/option.hpp"
#include "model/engine.hpp"

namespace cermet {

/// What weights and the KV cache can be quantized to while a model is loaded.
inline constexpr DTypeSet load_quantized_types{DType::i8, DType::f8_e4m3};

/// The rows of engine_options.inc, about an EngineOptions.
const OptionTable& engine_option_table();
/// Those of sampling_options.inc, about a GenerateOptions (model/generate.hpp).
const OptionTable& generate_option_table();
/// Markdown: a table of each. docs/reference/options.md holds it; a test keeps the two equal.
std::string option_reference_markdown();

}  // namespace cermet
