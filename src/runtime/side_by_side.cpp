#include "runtime/side_by_side.hpp"

#include <algorithm>
#include <map>

namespace cermet {
namespace {

/// Steps [first, end), which are one walk.
class Walk {
 public:
  Walk(std::span<const FusionGroup> groups, std::span<const std::int32_t> root, std::size_t first, std::size_t end)
      : first_(first), end_(end) {
    for (std::size_t step = first; step < end; ++step) {
      before_.emplace_back(end - first);
      for (const ValueId id : groups[step].operands)
        if (id) follow(step, root[static_cast<std::size_t>(id.index)], false);
      for (const ValueId id : groups[step].results) follow(step, root[static_cast<std::size_t>(id.index)], true);
      for (const ValueId id : groups[step].operands)
        if (id) touches_[root[static_cast<std::size_t>(id.index)]].push_back(step);
      for (const ValueId id : groups[step].results)
        touches_[root[static_cast<std::size_t>(id.index)]].push_back(step),
            written_[root[static_cast<std::size_t>(id.index)]] = step;
    }
  }

  void extend(std::vector<Lifetime>& lifetimes) const {
    for (const auto& [value, steps] : touches_) {
      Lifetime& lifetime = lifetimes[static_cast<std::size_t>(value)];
      if (lifetime.bytes == 0 || static_cast<std::size_t>(lifetime.last) >= end_) continue;
      for (std::size_t step = end_ - 1; step > static_cast<std::size_t>(lifetime.last); --step)
        if (!follows_all(step, steps)) {
          lifetime.last = static_cast<std::int32_t>(step);
          break;
        }
    }
  }

 private:
  /// A step follows every writer of what it touches, and, if it writes, every reader.
  void follow(std::size_t step, std::int32_t value, bool writes) {
    if (writes) {
      if (const auto touched = touches_.find(value); touched != touches_.end())
        for (const std::size_t earlier : touched->second) add(step, earlier);
    } else if (const auto writer = written_.find(value); writer != written_.end()) {
      add(step, writer->second);
    }
  }
  void add(std::size_t step, std::size_t earlier) {
    if (earlier >= step) return;
    std::vector<bool>& known = before_[step - first_];
    if (known[earlier - first_]) return;
    known[earlier - first_] = true;
    for (std::size_t i = 0; i < earlier - first_; ++i)
      if (before_[earlier - first_][i]) known[i] = true;
  }
  bool follows_all(std::size_t step, std::span<const std::size_t> earlier) const {
    return std::ranges::all_of(earlier, [&](std::size_t e) { return before_[step - first_][e - first_]; });
  }

  std::size_t first_, end_;
  std::vector<std::vector<bool>> before_;  ///< by step: those of the walk that have ended when it starts
  std::map<std::int32_t, std::vector<std::size_t>> touches_;  ///< by root
  std::map<std::int32_t, std::size_t> written_;               ///< by root: by which step last
};

}  // namespace

void outlive_branches(std::span<const FusionGroup> groups, std::span<const std::int32_t> walk_of,
                      std::span<const std::int32_t> root, std::vector<Lifetime>& lifetimes) {
  for (std::size_t first = 0, end; first < walk_of.size(); first = end) {
    for (end = first + 1; end < walk_of.size() && walk_of[end] == walk_of[first];) ++end;
    if (walk_of[first] >= 0 && end - first > 2) Walk(groups, root, first, end).extend(lifetimes);
  }
}

}  // namespace cermet
