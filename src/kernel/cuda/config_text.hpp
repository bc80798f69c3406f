// Configurations that host and device share, as CUDA source.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// "{.a = cermet::DType::bf16, .n = 4096}": the fields that differ from the defaults. A configuration lists its fields:
/// fields(visit) calls visit(name, value) for each, in the order of their declarations.
template <class Value>
std::string config_text(const Value& value) {
  if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, DType>) {
    return std::string(device_name(value));
  } else if constexpr (std::is_enum_v<Value>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_integral_v<Value>) {
    return fmt::format("{}", value);
  } else {
    std::vector<std::string> defaults;
    Value{}.fields([&](const char*, const auto& field) { defaults.push_back(config_text(field)); });
    std::string text;
    std::size_t i = 0;
    value.fields([&](const char* name, const auto& field) {
      const std::string own = config_text(field);
      if (own != defaults[i++]) text += fmt::format("{}.{} = {}", text.empty() ? "" : ", ", name, own);
    });
    return "{" + text + "}";
  }
}

}  // namespace cermet::cuda
