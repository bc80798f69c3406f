#include "kernel/config_match.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

std::string configs_text(std::span<const Config> configs) {
  std::string text;
  for (const Config& config : configs) text += fmt::format("{}{}", text.empty() ? "" : "; ", config.to_string());
  return text;
}

/// Throws unless some configuration has the field with this value.
void require_field(const Kernel& kernel, std::span<const Config> configs, const std::string& name, std::int64_t value,
                   std::string_view source) {
  std::set<std::string> names;
  std::set<std::int64_t> values;
  for (const Config& config : configs)
    for (const auto& [field, known] : config.fields()) {
      names.insert(field);
      if (field == name) values.insert(known);
    }
  require(!names.empty(), "{}: {}: expected default, because it runs in one way here, found {}", source, kernel.name,
          quote(name));
  require(names.contains(name), "{}: {}: expected a field of {}, found {}", source, kernel.name, fmt::join(names, ", "),
          quote(name));
  require(values.contains(value), "{}: {}: {}: expected one of {}, found {}", source, kernel.name, name,
          fmt::join(values, ", "), value);
}

}  // namespace

std::vector<Config> configs_with(const Kernel& kernel, std::span<const Config> configs, std::string_view text,
                                 std::string_view source) {
  const Config wanted = parse_config(text);
  if (wanted.empty()) return {wanted};
  for (const auto& [name, value] : wanted.fields()) require_field(kernel, configs, name, value, source);
  std::vector<Config> matching;
  std::ranges::copy_if(configs, std::back_inserter(matching), [&](const Config& config) {
    return std::ranges::all_of(wanted.fields(),
                               [&](const auto& field) { return config.find(field.first) == field.second; });
  });
  require(!matching.empty(), "{}: {}: expected one of {}, found {}", source, kernel.name, configs_text(configs),
          quote(text));
  return matching;
}

}  // namespace cermet
