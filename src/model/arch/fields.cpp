#include "model/arch/fields.hpp"

#include <algorithm>
#include <cmath>

namespace cermet::config_field {
namespace {

constexpr std::int64_t default_window = 4096;  // of Qwen where sliding_window is absent

}  // namespace

bool is_there(Json root, std::string_view key) {
  for (Json field : root) {
    if (field.key() == key) return true;
  }
  return false;
}

std::int64_t size(Json root, std::string_view key, std::int64_t max) { return root.at(key).as_integer(1, max); }

std::optional<std::int64_t> optional_size(Json root, std::string_view key, std::int64_t max) {
  const std::optional<Json> field = root.find(key);
  return field ? std::optional(field->as_integer(1, max)) : std::nullopt;
}

std::optional<std::int64_t> optional_whole_size(Json root, std::string_view key, std::int64_t max) {
  const std::optional<Json> field = root.find(key);
  if (!field || !field->is(JsonKind::number)) return optional_size(root, key, max);
  const double value = field->as_number();
  if (value != std::floor(value) || value < 1 || value > static_cast<double>(max))
    field->unexpected(fmt::format("an integer from 1 to {}", max));
  return static_cast<std::int64_t>(value);
}

bool flag(Json root, std::string_view key, bool fallback) {
  const std::optional<Json> field = root.find(key);
  return field ? field->as_bool() : fallback;
}

double number(Json root, std::string_view key, double fallback, double low, double high) {
  const std::optional<Json> field = root.find(key);
  if (!field) return fallback;
  const double value = field->as_number();
  if (std::isfinite(value) && value >= low && value <= high) return value;
  if (high == std::numeric_limits<double>::max()) field->unexpected(fmt::format("a number of at least {}", low));
  field->unexpected(fmt::format("a number from {} to {}", low, high));
}

std::int64_t sliding_window(Json root, std::int64_t absent) {
  return is_there(root, "sliding_window") ? optional_whole_size(root, "sliding_window").value_or(0) : absent;
}

std::vector<std::int64_t> windows_of_upper_layers(Json root, std::int64_t layers) {
  // A window that is switched off is still an integer or null.
  const std::optional<Json> field = root.find("sliding_window");
  std::int64_t window = is_there(root, "sliding_window") ? 0 : default_window;
  if (field) window = field->as_integer(0, max_size);
  if (!flag(root, "use_sliding_window", false)) window = 0;
  else if (field && window == 0) field->unexpected("an integer of at least 1");

  const std::optional<Json> types = root.find("layer_types");
  std::int64_t first = 28;
  if (const std::optional<Json> upper = root.find("max_window_layers")) first = upper->as_integer(0, max_size);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers));
  if (!types) {
    if (first < layers) std::fill(windows.begin() + first, windows.end(), window);
    return windows;
  }
  std::size_t layer = 0;
  for (Json type : types->as_array()) {
    if (layer >= windows.size()) break;  // the caller compares the lengths
    if (type.as_string() == "sliding_attention") windows[layer] = window;
    ++layer;
  }
  return windows;
}

void experts(Json root, std::int64_t count, std::int64_t per_token, ModelConfig& config) {
  const std::optional<std::int64_t> local = optional_size(root, "num_local_experts", max_experts);
  const std::optional<std::int64_t> all = optional_size(root, "num_experts", max_experts);
  if (local && all && *local != *all)
    root.at("num_experts").unexpected(fmt::format("{}, the value of num_local_experts", *local));
  config.experts = local.value_or(all.value_or(count));
  config.experts_per_token =
      optional_size(root, "num_experts_per_tok", config.experts).value_or(std::min(per_token, config.experts));
}

}  // namespace cermet::config_field
