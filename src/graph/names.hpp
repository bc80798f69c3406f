// The names of a graph's values: each once, found in constant time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/value_id.hpp"

namespace cermet {

class Names {
 public:
  /// Whether the name was free; where it was not, it stays with its first value.
  bool add(const std::string& name, ValueId id) { return ids_.try_emplace(name, id).second; }
  void remove(std::string_view name) {
    if (const auto at = ids_.find(name); at != ids_.end()) ids_.erase(at);
  }
  /// ValueId{} when there is none.
  ValueId find(std::string_view name) const {
    const auto at = ids_.find(name);
    return at != ids_.end() ? at->second : ValueId{};
  }
  /// Free names for the results of one node, which share a number: "rope.2.q", "rope.2.k" for the base "rope" and the
  /// suffixes ".q" and ".k".
  std::vector<std::string> fresh(const std::string& base, std::span<const std::string> suffixes);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, ValueId, Hash, std::equal_to<>> ids_;
  std::unordered_map<std::string, int> next_;  ///< by base and first suffix: the number from which on the search goes
};

}  // namespace cermet
