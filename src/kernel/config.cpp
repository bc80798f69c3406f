#include "kernel/config.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

Config::Config(std::initializer_list<std::pair<std::string_view, std::int64_t>> fields) {
  for (const auto& [name, value] : fields) fields_.emplace_back(name, value);
}

std::optional<std::int64_t> Config::find(std::string_view name) const {
  const auto found = std::ranges::find_if(fields_, [&](const auto& field) { return field.first == name; });
  return found == fields_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t Config::at(std::string_view name) const {
  const auto value = find(name);
  CERMET_ASSERT(value.has_value());
  return *value;
}

void Config::set(std::string_view name, std::int64_t value) {
  const auto found = std::ranges::find_if(fields_, [&](const auto& field) { return field.first == name; });
  if (found == fields_.end()) fields_.emplace_back(name, value);
  else found->second = value;
}

std::string Config::to_string() const {
  if (empty()) return "default";
  std::string text;
  for (const auto& [name, value] : fields_) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Config parse_config(std::string_view text) {
  Config config;
  if (text == "default") return config;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" ,", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals), number = word.substr(std::min(equals + 1, word.size()));
    std::int64_t value = 0;
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    require(is_name(name) && error == std::errc() && rest == number.data() + number.size(),
            "configuration: expected words like tile_m=128, found {}", quote(word));
    require(!config.find(name), "configuration: expected {} once, found it again in {}", name, quote(text));
    config.fields_.emplace_back(name, value);
  }
  require(!config.empty(), "configuration: expected words like tile_m=128, or default, found {}", quote(text));
  return config;
}

}  // namespace cermet
