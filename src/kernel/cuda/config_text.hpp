// A device configuration as the source of a program spells it.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

template <class Config>
std::string config_text(const Config& config);

template <class Value>
std::string field_text(const Value& value) {
  if constexpr (std::is_same_v<Value, DType> || std::is_same_v<Value, bool>) return device_name(value);
  else if constexpr (std::is_integral_v<Value>) return std::to_string(value);
  else if constexpr (std::is_enum_v<Value>) return name_of(value);
  else return config_text(value);
}

/// "{.k = 4096, .x = cermet::DType::bf16}": the fields that differ from their defaults. A configuration is a struct
/// that host and device share; its fields(visit) calls visit(name, field) for each, in their order. An enumeration has
/// a function name_of() beside it, which gives "cermet::Overlap::late".
template <class Config>
std::string config_text(const Config& config) {
  std::vector<std::string> defaults;
  Config{}.fields([&](const char*, const auto& value) { defaults.push_back(field_text(value)); });
  std::string text;
  std::size_t at = 0;
  config.fields([&](const char* name, const auto& value) {
    const std::string own = field_text(value);
    if (own != defaults[at++]) text += fmt::format("{}.{} = {}", text.empty() ? "" : ", ", name, own);
  });
  return "{" + text + "}";
}

}  // namespace cermet::cuda
