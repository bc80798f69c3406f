#include "select/forced.hpp"

#include <algorithm>
#include <set>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::set<std::string_view> all_names() {
  std::set<std::string_view> names;
  for (const Kernel* kernel : cpu::all_kernels()) names.insert(kernel->name);
  for (const Kernel* kernel : cuda::all_kernels()) names.insert(kernel->name);
  return names;
}

std::string_view family_of(std::string_view kernel) { return kernel.substr(0, kernel.find('.')); }

/// Throws unless a kernel has this name: with the kernels of its family, or where there is no such family with all families.
void require_kernel(std::string_view name, std::string_view source) {
  const std::set<std::string_view> names = all_names();
  if (names.contains(name)) return;
  std::set<std::string_view> family, families;
  for (const std::string_view known : names) {
    families.insert(family_of(known));
    if (family_of(known) == family_of(name)) family.insert(known);
  }
  if (family.empty()) fail(Status::invalid_argument, "{}: expected a kernel of a family like {}, found {}", source, fmt::join(families, ", "), quote(name));
  fail(Status::invalid_argument, "{}: expected one of the kernels {}, found {}", source, fmt::join(family, ", "), quote(name));
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
    require_kernel(kernel, source);
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
