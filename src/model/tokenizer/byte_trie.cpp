#include "model/tokenizer/byte_trie.hpp"

#include <algorithm>

namespace cermet {

ByteTrie::ByteTrie(std::span<const std::string_view> texts) {
  // Breadth first: a node stands for the texts [begin, end), which agree in their first `depth` bytes.
  struct Group {
    std::size_t begin, end, depth;
  };
  std::vector<Group> groups = {{0, texts.size(), 0}};
  for (std::size_t node = 0; node < groups.size(); ++node) {
    auto [begin, end, depth] = groups[node];
    std::int32_t ends_here = -1;
    if (begin < end && texts[begin].size() == depth) ends_here = static_cast<std::int32_t>(begin++);
    const auto first_edge = static_cast<std::uint32_t>(edges_.size());
    while (begin < end) {
      const char byte = texts[begin][depth];
      std::size_t next = begin;
      while (next < end && texts[next][depth] == byte) ++next;
      edges_.push_back({static_cast<std::uint8_t>(byte), static_cast<std::uint32_t>(groups.size())});
      groups.push_back({begin, next, depth + 1});
      begin = next;
    }
    nodes_.push_back({first_edge, static_cast<std::uint32_t>(edges_.size()), ends_here});
  }
}

const ByteTrie::Node* ByteTrie::next(const Node& node, char byte) const {
  const auto last = edges_.begin() + node.last_edge;
  const auto wanted = static_cast<std::uint8_t>(byte);
  const auto edge = std::lower_bound(edges_.begin() + node.first_edge, last, wanted,
                                     [](const Edge& e, std::uint8_t b) { return e.byte < b; });
  return edge == last || edge->byte != wanted ? nullptr : &nodes_[edge->node];
}

void ByteTrie::for_prefixes(std::string_view text, FunctionRef<void(std::size_t, std::int32_t)> sink) const {
  const Node* node = nodes_.data();
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = next(*node, text[i]);
    if (node == nullptr) return;
    if (node->text >= 0) sink(i + 1, node->text);
  }
}

ByteTrie::Found ByteTrie::longest(std::string_view text) const {
  Found found{0, -1};
  for_prefixes(text, [&](std::size_t size, std::int32_t index) { found = {size, index}; });
  return found;
}

}  // namespace cermet
