// Fields of config.json that several architectures share, with the bounds they are held to.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "io/json_file.hpp"
#include "model/config.hpp"

namespace cermet::config_field {

inline constexpr std::int64_t max_size = std::numeric_limits<std::int32_t>::max();  ///< of one dimension
inline constexpr std::int64_t max_layers = 4096;
inline constexpr std::int64_t max_experts = 65536;

/// A field that must be there and be an integer from 1 to `max`.
std::int64_t size(Json root, std::string_view key, std::int64_t max = max_size);
/// The same for a field that may be absent or null.
std::optional<std::int64_t> optional_size(Json root, std::string_view key, std::int64_t max = max_size);
/// The same, where transformers takes a whole number that is written as a real: 4096.0.
std::optional<std::int64_t> optional_whole_size(Json root, std::string_view key, std::int64_t max = max_size);
/// true or false; `fallback` where absent or null.
bool flag(Json root, std::string_view key, bool fallback);
/// A finite number with low <= value <= high; `fallback` where absent or null.
double number(Json root, std::string_view key, double fallback, double low,
              double high = std::numeric_limits<double>::max());

/// `sliding_window`; null means none and `absent` (0: none) holds where the field is missing.
std::int64_t sliding_window(Json root, std::int64_t absent);
/// Qwen's windows, by layer: none without `use_sliding_window`; else of the layers that `layer_types` names, or those
/// from `max_window_layers` on.
std::vector<std::int64_t> windows_of_upper_layers(Json root, std::int64_t layers);
/// Number of experts, how many a token takes: `num_experts` or `num_local_experts`, `num_experts_per_tok`; these
/// defaults where they are absent.
void experts(Json root, std::int64_t count, std::int64_t per_token, ModelConfig& config);
/// Whether there is a field of this name, be it null.
bool is_there(Json root, std::string_view key);

}  // namespace cermet::config_field
