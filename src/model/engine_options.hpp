// Element types of EngineOptions by name, as the command line and the C interface take them.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.hpp"

namespace cermet {

/// What weights and the KV cache can be quantized to while a model is loaded.
inline constexpr DTypeSet load_quantized_types{DType::i8, DType::f8_e4m3};

/// Each takes the name of an element type, or int8 and fp8 as other names of i8 and f8_e4m3; nothing for "". Throws
/// Error naming `option`. EngineOptions::dtype.
std::optional<DType> operand_type_named(std::string_view option, std::string_view name);
/// EngineOptions::weights.
std::optional<DType> weight_type_named(std::string_view option, std::string_view name);
/// EngineOptions::head.
std::optional<DType> head_type_named(std::string_view option, std::string_view name);
/// EngineOptions::kv_cache.
std::optional<DType> cache_type_named(std::string_view option, std::string_view name);

}  // namespace cermet
