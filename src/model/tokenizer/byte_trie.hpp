// Texts by their bytes: which of them a text begins with.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"

namespace cermet {

class ByteTrie {
 public:
  ByteTrie() : ByteTrie(std::span<const std::string_view>{}) {}
  /// Of texts that are sorted and differ from each other.
  explicit ByteTrie(std::span<const std::string_view> texts);

  /// Calls sink with the size and the index of each text that `text` begins with, shortest first; not of an empty one.
  void for_prefixes(std::string_view text, FunctionRef<void(std::size_t size, std::int32_t index)> sink) const;
  /// The longest of them: its index, or -1.
  struct Found {
    std::size_t size;
    std::int32_t index;
  };
  Found longest(std::string_view text) const;

 private:
  struct Edge {
    std::uint8_t byte;
    std::uint32_t node;
  };
  struct Node {
    std::uint32_t first_edge, last_edge;  ///< a range of edges_, sorted by byte
    std::int32_t text;                    ///< that ends here; -1: none
  };
  const Node* next(const Node& node, char byte) const;

  std::vector<Node> nodes_;  ///< 0 is the root
  std::vector<Edge> edges_;
};

}  // namespace cermet
