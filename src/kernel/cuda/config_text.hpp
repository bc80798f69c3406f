// Configurations that host and device share, as device code spells them: template arguments of a task.
#pragma once

#include <string>
#include <string_view>

#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// "cermet::RowLayout{.columns = 4096, .lanes = 256}" of a struct that has a for_each_field(config, field).
template <class Config>
std::string config_text(std::string_view type, const Config& config) {
  std::string fields;
  for_each_field(config, [&]<class T>(const char* name, const T& value) {
    std::string text;
    if constexpr (std::is_same_v<T, int>) text = std::to_string(value);
    else text = device_name(value);
    fields += fmt::format("{}.{} = {}", fields.empty() ? "" : ", ", name, text);
  });
  return fmt::format("{}{{{}}}", type, fields);
}

}  // namespace cermet::cuda
