#include "select/tuning_table.hpp"

#include <algorithm>
#include <tuple>

namespace cermet {

const TuningEntry* TuningTable::find(const TuningKey& key) const {
  const auto [begin, end] = entries_.equal_range(hash_(key));
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.key == key; });
  return found == end ? nullptr : &found->second;
}

bool TuningTable::has_device(std::string_view device) const {
  return std::ranges::find(devices_, device) != devices_.end();
}

void TuningTable::put(TuningEntry entry) {
  if (!has_device(entry.key.device)) devices_.push_back(entry.key.device);
  const std::size_t hash = hash_(entry.key);
  const auto [begin, end] = entries_.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& old) { return old.second.key == entry.key; });
  if (found == end) entries_.emplace(hash, std::move(entry));
  else found->second = std::move(entry);
}

std::size_t TuningTable::clear(std::string_view device) {
  std::erase_if(devices_, [&](const std::string& known) { return device.empty() || known == device; });
  return std::erase_if(entries_,
                       [&](const auto& entry) { return device.empty() || entry.second.key.device == device; });
}

void TuningTable::visit(FunctionRef<void(const TuningKey&)> look) const {
  for (const auto& [hash, entry] : entries_) look(entry.key);
}

std::vector<TuningEntry> TuningTable::all(std::string_view device) const {
  std::vector<TuningEntry> list;
  for (const auto& [hash, entry] : entries_)
    if (device.empty() || entry.key.device == device) list.push_back(entry);
  std::ranges::sort(list, {}, [](const TuningEntry& entry) {
    return std::tie(entry.key.device, entry.key.versions, entry.key.region);
  });
  return list;
}

}  // namespace cermet
