// The keys of attention tasks in ranges that threads claim one after the other.
#pragma once

#include <algorithm>
#include <array>

#include "kernel/cpu/attention/state.hpp"

namespace cermet::cpu {

struct KeyRange {
  std::int64_t begin, end;
};

/// Keys that a query at `position` sees.
inline KeyRange visible_keys(const AttentionSettings& settings, std::int64_t position, std::int64_t keys) {
  KeyRange range{0, keys};
  if (settings.window > 0)
    range = {std::max<std::int64_t>(0, position - settings.window + 1),
             std::min(keys, position + settings.window_after)};
  if (settings.causal) range.end = std::min(range.end, position + 1);
  return range;
}

/// Keys that any row of a task sees, divided into at most `most` ranges of whole key tiles.
struct KeySplits {
  KeyRange keys;
  std::int64_t count, size;

  KeySplits(const AttentionSettings& settings, const AttentionTask& task, std::int64_t most);
  KeyRange operator[](std::int64_t i) const {
    return {keys.begin + i * size, std::min(keys.end, keys.begin + (i + 1) * size)};
  }
};

/// How many ranges each task has. Where all see about as many keys: as many for each as make 64 items. Else a task has
/// its share of 64 by what it computes, so that none is more than a 32nd of all where keys allow it. Does not depend on
/// the number of threads.
class KeyCuts {
 public:
  static constexpr std::int64_t all = 64, least_keys = 256;

  /// `unlike`: tasks whose keys differ much, of which a few may be most of the work.
  KeyCuts(const AttentionSettings& settings, const AttentionShape& shape, std::int64_t tasks,
          FunctionRef<AttentionTask(std::int64_t)> task, bool unlike);

  struct Item {
    std::int64_t task, split;
  };
  std::int64_t items() const { return weighed_ ? ends_[static_cast<std::size_t>(tasks_ - 1)] : tasks_ * each_; }
  Item operator[](std::int64_t item) const;
  /// False: no task has more than one range.
  bool any() const { return weighed_ ? slots_[static_cast<std::size_t>(tasks_ - 1)] > 0 : each_ > 1; }
  KeySplits splits(const AttentionTask& task) const;
  /// Where the partial result of the first range of a task with several stands, of `all`.
  std::int64_t slot(std::int64_t index) const;

 private:
  static constexpr std::int64_t most_weighed = 512;
  std::int64_t work_of(const AttentionTask& task) const;

  const AttentionSettings& settings_;
  const AttentionShape& shape_;
  std::int64_t tasks_, each_, work_ = 0;
  bool weighed_;
  std::array<std::int32_t, most_weighed> ends_;   // items up to and with each task
  std::array<std::int32_t, most_weighed> slots_;  // ranges of those that have several, up to and with each task
};

inline KeySplits::KeySplits(const AttentionSettings& settings, const AttentionTask& task, std::int64_t most)
    : keys{visible_keys(settings, task.position, task.keys).begin,
           visible_keys(settings, task.position + task.tokens - 1, task.keys).end} {
  const std::int64_t length = std::max<std::int64_t>(0, keys.end - keys.begin);
  size = round_up(div_up(length, std::clamp<std::int64_t>(length / KeyCuts::least_keys, 1, most)), key_tile);
  count = size == 0 ? 1 : div_up(length, size);
}

inline KeyCuts::KeyCuts(const AttentionSettings& settings, const AttentionShape& shape, std::int64_t tasks,
                        FunctionRef<AttentionTask(std::int64_t)> task, bool unlike)
    : settings_(settings),
      shape_(shape),
      tasks_(tasks),
      each_(std::max<std::int64_t>(1, all / tasks)),
      weighed_(unlike && tasks > 1 && tasks <= most_weighed) {
  if (!weighed_) {
    std::int64_t most = 1;  // for the most keys: items without any would only be claimed
    for (std::int64_t t = 0; t < tasks && most < each_; ++t) {
      const KeyRange keys = KeySplits(settings, task(t), 1).keys;
      most = std::max(most, (keys.end - keys.begin) / least_keys);
    }
    each_ = std::min(each_, most);
    return;
  }
  for (std::int64_t t = 0; t < tasks; ++t) work_ += work_of(task(t));
  std::int32_t items = 0, slots = 0;
  for (std::int64_t t = 0; t < tasks; ++t) {
    const auto count = static_cast<std::int32_t>(splits(task(t)).count);
    ends_[static_cast<std::size_t>(t)] = items += count;
    slots_[static_cast<std::size_t>(t)] = slots += count > 1 ? count : 0;
  }
}

/// Rows are computed together up to their padding.
inline std::int64_t KeyCuts::work_of(const AttentionTask& task) const {
  const KeyRange keys = KeySplits(settings_, task, 1).keys;
  return std::max<std::int64_t>(0, keys.end - keys.begin) * RowState::padded(task.tokens * shape_.group);
}

inline KeySplits KeyCuts::splits(const AttentionTask& task) const {
  return {settings_, task, weighed_ && work_ > 0 ? std::max<std::int64_t>(1, work_of(task) * all / work_) : each_};
}

inline KeyCuts::Item KeyCuts::operator[](std::int64_t item) const {
  if (!weighed_) return {item / each_, item % each_};
  const auto* const begin = ends_.data();
  const std::int64_t task = std::upper_bound(begin, begin + tasks_, item) - begin;
  return {task, task > 0 ? item - begin[task - 1] : item};
}

inline std::int64_t KeyCuts::slot(std::int64_t index) const {
  if (!weighed_) return index * each_;
  return index > 0 ? slots_[static_cast<std::size_t>(index - 1)] : 0;
}

}  // namespace cermet::cpu
