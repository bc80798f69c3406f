// Entries in memory: a look-up costs a hash and a comparison.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

/// Found by hash and then by the whole key, so that keys that share a hash stay distinct.
class TuningTable {
 public:
  using Hash = std::size_t (*)(const TuningKey&);
  explicit TuningTable(Hash hash = hash_of) : hash_(hash) {}

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  /// Null where there is none; valid until the next change.
  const TuningEntry* find(const TuningKey& key) const;
  /// Whether some entry is for the device of this text.
  bool has_device(std::string_view device) const;
  /// In place of one of the same key.
  void put(TuningEntry entry);
  /// Removes the entries of a device, or all where it is empty. Returns how many there were.
  std::size_t clear(std::string_view device);
  void visit(FunctionRef<void(const TuningKey&)> look) const;
  /// By key; of one device where it is named.
  std::vector<TuningEntry> all(std::string_view device = {}) const;

 private:
  Hash hash_;
  std::unordered_multimap<std::size_t, TuningEntry> entries_;
  std::vector<std::string> devices_;  ///< each once
};

}  // namespace cermet
