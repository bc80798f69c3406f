#include "select/tuning_import.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Why an entry is refused; empty for one that is not.
std::string refusal(const TuningKey& key, std::span<const DeviceIdentity> devices) {
  const auto same = std::ranges::find_if(
      devices, [&](const DeviceIdentity& device) { return is_same_device(device.device, key.device); });
  if (same == devices.end()) {
    std::string known;
    for (const DeviceIdentity& device : devices)
      known += fmt::format("{}{}", known.empty() ? "" : " or ", quote(device.device));
    return fmt::format("device: expected {}, found {}", known, quote(key.device));
  }
  return same->versions == key.versions
             ? ""
             : fmt::format("versions: expected {}, found {}", quote(same->versions), quote(key.versions));
}

}  // namespace

TuningImport import_tuning(TuningDatabase& database, std::span<const TuningEntry> entries,
                           std::span<const DeviceIdentity> devices) {
  TuningImport report;
  for (const TuningEntry& entry : entries) {
    std::string reason = refusal(entry.key, devices);
    if (reason.empty()) {
      database.put(entry);
      ++report.stored;
      continue;
    }
    ++report.refused;
    if (std::ranges::find(report.reasons, reason) == report.reasons.end()) report.reasons.push_back(std::move(reason));
  }
  return report;
}

}  // namespace cermet
