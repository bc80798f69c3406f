#include "kernel/forced.hpp"

#include <algorithm>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/config.hpp"

namespace cermet {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
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
    text.remove_prefix(
        std::min(text.size(), text.find(';') == std::string_view::npos ? text.size() : text.find(';') + 1));
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    require(colon != std::string_view::npos, "{}: expected `kernel: field=1 ...` between semicolons, found {}", source,
            quote(entry));
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

}  // namespace cermet
