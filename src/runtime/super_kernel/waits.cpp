#include "runtime/super_kernel/waits.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace cermet {
namespace {

class Waits {
 public:
  Waits(const SuperBlocks& blocks, std::size_t first, std::size_t last) : blocks_(blocks), first_(first), last_(last) {
    for (std::size_t g = first; g <= last; ++g)
      for (const std::int32_t node : blocks.groups[g].nodes) block_of_[node] = g;
  }

  std::vector<SuperWait> run() {
    std::vector<SuperWait> list;
    for (std::size_t block = first_; block <= last_; ++block) {
      std::map<std::size_t, std::vector<ValueId>> found = values_of(block);
      std::set<std::size_t>& known = ended_[block];
      for (const auto& [before, values] : found) add(known, before);
      for (std::size_t before = block; before-- > first_;)
        if (!known.contains(before) && shares_memory(before, block)) found[before], add(known, before);
      for (auto& [before, values] : found) list.push_back({block, before, std::move(values)});
    }
    return list;
  }

 private:
  void add(std::set<std::size_t>& known, std::size_t before) const {
    known.insert(before);
    if (const auto ended = ended_.find(before); ended != ended_.end())
      known.insert(ended->second.begin(), ended->second.end());
  }

  /// By earlier block: what this one reads of it.
  std::map<std::size_t, std::vector<ValueId>> values_of(std::size_t block) const {
    std::map<std::size_t, std::vector<ValueId>> found;
    for (const ValueId operand : blocks_.groups[block].operands) {
      if (!operand) continue;
      const auto maker = block_of_.find(maker_of(operand));
      if (maker == block_of_.end() || maker->second >= block) continue;
      std::vector<ValueId>& values = found[maker->second];
      if (std::ranges::find(values, operand) == values.end()) values.push_back(operand);
    }
    return found;
  }

  /// The node that computes a value, which may be seen with other dimensions; -1 for none.
  std::int32_t maker_of(ValueId id) const {
    for (;;) {
      const std::int32_t node = blocks_.graph.value(id).producer;
      if (node < 0 || !std::ranges::binary_search(blocks_.views, node)) return node;
      id = blocks_.graph.nodes()[static_cast<std::size_t>(node)].inputs.front();
    }
  }

  bool shares_memory(std::size_t before, std::size_t block) const {
    const FusionGroup &earlier = blocks_.groups[before], &later = blocks_.groups[block];
    return (blocks_.has_workspace[before] && blocks_.has_workspace[block]) || overlap(later.results, earlier.results) ||
           overlap(later.results, earlier.operands) || overlap(later.operands, earlier.results);
  }
  bool overlap(std::span<const ValueId> left, std::span<const ValueId> right) const {
    return std::ranges::any_of(left, [&](ValueId a) {
      return a && std::ranges::any_of(right, [&](ValueId b) { return b && overlap(a, b); });
    });
  }
  bool overlap(ValueId left, ValueId right) const {
    const std::int32_t a = root(left), b = root(right);
    if (a == b) return blocks_.graph.values()[static_cast<std::size_t>(a)].kind != ValueKind::constant;
    const std::int64_t at = offset(a), from = offset(b);
    return at >= 0 && from >= 0 && at < from + bytes(b) && from < at + bytes(a);
  }
  std::int32_t root(ValueId id) const { return blocks_.memory.root[static_cast<std::size_t>(id.index)]; }
  std::int64_t offset(std::int32_t value) const { return blocks_.memory.offset[static_cast<std::size_t>(value)]; }
  std::int64_t bytes(std::int32_t value) const {
    return dense_bytes(blocks_.graph.values()[static_cast<std::size_t>(value)].type, blocks_.maximum);
  }

  const SuperBlocks& blocks_;
  std::size_t first_, last_;
  std::map<std::int32_t, std::size_t> block_of_;          ///< by node, of the blocks in question
  std::map<std::size_t, std::set<std::size_t>> ended_{};  ///< by block: those that have ended when it starts
};

}  // namespace

std::vector<SuperWait> waits_of(const SuperBlocks& blocks, std::size_t first, std::size_t last) {
  return Waits(blocks, first, last).run();
}

}  // namespace cermet
