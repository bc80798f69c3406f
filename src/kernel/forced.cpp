#include "kernel/forced.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/decline.hpp"

namespace cermet {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string configs_text(std::span<const Config> configs) {
  std::string text;
  for (const Config& config : configs) text += fmt::format("{}{}", text.empty() ? "" : "; ", config.to_string());
  return text;
}

/// Throws unless some configuration has the field with this value.
void require_field(const Kernel& kernel, std::span<const Config> configs, const std::string& name, std::int64_t value, std::string_view source) {
  std::set<std::string> names;
  std::set<std::int64_t> values;
  for (const Config& config : configs)
    for (const auto& [field, known] : config.fields()) {
      names.insert(field);
      if (field == name) values.insert(known);
    }
  require(!names.empty(), "{}: {}: expected default, because it runs in one way here, found {}", source, kernel.name, quote(name));
  require(names.contains(name), "{}: {}: expected a field of {}, found {}", source, kernel.name, fmt::join(names, ", "), quote(name));
  require(values.contains(value), "{}: {}: {}: expected one of {}, found {}", source, kernel.name, name, fmt::join(values, ", "), value);
}

/// What force_configs() was given; nothing before its first call.
std::optional<ForcedConfigs>& given() {
  static std::optional<ForcedConfigs> configs;
  return configs;
}

}  // namespace

ForcedConfigs::ForcedConfigs(std::string_view text, std::string_view source) : source_(source) {
  while (!text.empty()) {
    const std::string_view entry = trimmed(text.substr(0, text.find(';')));
    text.remove_prefix(std::min(text.size(), text.find(';') == std::string_view::npos ? text.size() : text.find(';') + 1));
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    require(colon != std::string_view::npos, "{}: expected `kernel: field=1 ...` between semicolons, found {}", source, quote(entry));
    const std::string_view kernel = trimmed(entry.substr(0, colon)), fields = trimmed(entry.substr(colon + 1));
    require(!find(kernel), "{}: expected {} once, found it again in {}", source, kernel, quote(entry));
    try {
      parse_config(fields);
    } catch (const Error& error) {
      throw Error(error.status(), fmt::format("{}: {}: {}", source, kernel, error.what()));
    }
    entries_.emplace_back(kernel, fields);
  }
}

std::optional<std::string_view> ForcedConfigs::find(std::string_view kernel) const {
  const auto found = std::ranges::find_if(entries_, [&](const auto& entry) { return entry.first == kernel; });
  return found == entries_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

const ForcedConfigs& forced_configs() {
  if (given()) return *given();
  static const ForcedConfigs variable(env::value(env::Name::CERMET_CONFIG), "environment variable CERMET_CONFIG");
  return variable;
}

void force_configs(ForcedConfigs configs) { given() = std::move(configs); }

std::vector<Config> configs_with(const Kernel& kernel, std::span<const Config> configs, std::string_view text, std::string_view source) {
  const Config wanted = parse_config(text);
  if (wanted.empty()) return {wanted};
  for (const auto& [name, value] : wanted.fields()) require_field(kernel, configs, name, value, source);
  std::vector<Config> matching;
  std::ranges::copy_if(configs, std::back_inserter(matching), [&](const Config& config) {
    return std::ranges::all_of(wanted.fields(), [&](const auto& field) { return config.find(field.first) == field.second; });
  });
  require(!matching.empty(), "{}: {}: expected one of {}, found {}", source, kernel.name, configs_text(configs), quote(text));
  return matching;
}

PartChoice choose_part(std::span<const Kernel* const> kernels, const Region& region) {
  PartChoice choice;
  for (const Kernel* kernel : kernels) {
    const auto text = forced_configs().find(kernel->name);
    if ((choice.kernel && !text) || decline_of(*kernel, region)) continue;
    if (text) return {kernel, configs_with(*kernel, kernel->configs(region), *text, forced_configs().source()).front()};
    choice.kernel = kernel;
  }
  return choice;
}

}  // namespace cermet
