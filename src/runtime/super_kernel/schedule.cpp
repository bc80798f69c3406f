#include "runtime/super_kernel/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "device/dependency.hpp"
#include "runtime/overlap.hpp"
#include "runtime/super_kernel/order.hpp"

namespace cermet {
namespace {

/// An item that would wait for more counters of one task waits for all of that task, and so do all others.
constexpr std::size_t most_conditions = 8;
/// Pairs of launches with more items are not looked at one by one.
constexpr std::int64_t most_items = 1 << 16;

using Needs = std::vector<ItemRange>;  ///< items of the earlier task, ascending; neighbours are joined

/// What the items of one task need of an earlier one.
struct Pair {
  std::uint32_t before = 0, after = 0;
  std::vector<Needs> sets;             ///< those that occur
  std::vector<std::uint32_t> of_item;  ///< by item of `after`: its set
  bool everything = false;             ///< every item needs all of `before`
  bool together = false;               ///< all items of `before` are needed by some item
};

std::int64_t count(const Needs& needs) {
  std::int64_t items = 0;
  for (const ItemRange& range : needs) items += range.count();
  return items;
}

class Scheduler {
 public:
  Scheduler(const Plan& plan, std::size_t first, std::size_t end, const SuperKernelOptions& options,
            std::uint32_t blocks)
      : plan_(plan), first_(first), options_(options) {
    schedule_.width = blocks > 0 ? blocks : static_cast<std::uint32_t>(options.width);
    for (std::size_t l = first; l < end; ++l) {
      const Launch& launch = plan.launches()[l];
      schedule_.tasks.push_back(
          {.launch = static_cast<std::uint32_t>(l), .items = std::max(1u, launch.items), .barriers = launch.barriers});
    }
  }

  SuperSchedule run() {
    if (options_.debug_sync_all) follow_one_another();
    else find_pairs();
    for (std::uint32_t t = 0; t < schedule_.tasks.size(); ++t) give_counters(t);
    for (std::uint32_t t = 0; t < schedule_.tasks.size(); ++t) give_conditions(t);
    for (SuperTask& each : schedule_.tasks) feed(each);
    schedule_.order = super_order(schedule_.tasks, orders(), options_);
    return std::move(schedule_);
  }

 private:
  SuperTask& task(std::uint32_t t) { return schedule_.tasks[t]; }

  /// Idle items for the blocks that have none of a task whose items wait for each other.
  void feed(SuperTask& narrow) const {
    if (!options_.feed_sync_all || narrow.barriers == 0 || narrow.items >= schedule_.width) return;
    narrow.idle = schedule_.width - narrow.items;
    narrow.items = schedule_.width;
  }

  Pair whole(std::uint32_t before, std::uint32_t after) {
    return {before, after, {{{0, task(before).items}}}, std::vector<std::uint32_t>(task(after).items), true, true};
  }

  void follow_one_another() {
    for (std::uint32_t t = 1; t < schedule_.tasks.size(); ++t) pairs_.push_back(whole(t - 1, t));
  }

  /// From the nearest earlier task on, so that what the pairs with nearer ones imply is left out.
  void find_pairs() {
    std::vector<std::set<std::uint32_t>> ended(
        schedule_.tasks.size());  // by task: others that have ended when all its items have
    for (std::uint32_t after = 0; after < schedule_.tasks.size(); ++after) {
      std::set<std::uint32_t> known;  // that have ended before any item of `after` starts
      for (std::uint32_t before = after; before-- > 0;) {
        if (known.contains(before) || !must_follow(plan_, first_ + before, first_ + after)) continue;
        Pair pair = between(before, after);
        if (pair.sets.empty()) continue;
        if (pair.everything) known.insert(before), known.insert(ended[before].begin(), ended[before].end());
        if (pair.together) ended[after].insert(before), ended[after].insert(ended[before].begin(), ended[before].end());
        pairs_.push_back(std::move(pair));
      }
    }
  }

  Pair between(std::uint32_t before, std::uint32_t after) {
    const std::int64_t items = task(before).items, readers = task(after).items;
    if (!options_.early_start || items * readers == 1 || items > most_items || readers > most_items ||
        task(before).barriers + task(after).barriers > 0)
      return whole(before, after);
    Pair pair{before, after, {}, {}, true, false};
    std::map<std::vector<std::int64_t>, std::uint32_t> known;
    for (std::int64_t item = 0; item < readers; ++item) {
      Needs needs = items_before(plan_, first_ + before, first_ + after, item);
      std::vector<std::int64_t> key;
      for (const ItemRange& range : needs) key.push_back(range.first), key.push_back(range.end);
      const auto [at, added] = known.emplace(std::move(key), static_cast<std::uint32_t>(pair.sets.size()));
      pair.of_item.push_back(at->second);
      pair.everything = pair.everything && count(needs) == items;
      if (added) pair.sets.push_back(std::move(needs));
    }
    if (pair.sets.size() == 1 && pair.sets[0].empty()) pair.sets.clear();
    pair.together = covers(pair.sets, items);
    return pair;
  }

  static bool covers(const std::vector<Needs>& sets, std::int64_t items) {
    std::vector<ItemRange> all;
    for (const Needs& needs : sets) all.insert(all.end(), needs.begin(), needs.end());
    std::ranges::sort(all, {}, &ItemRange::first);
    std::int64_t end = 0;
    for (const ItemRange& range : all)
      if (range.first <= end) end = std::max(end, range.end);
    return end >= items;
  }

  /// Items that the same sets need share a counter; one counter for all where that makes too many conditions.
  void give_counters(std::uint32_t t) {
    std::vector<std::vector<std::uint32_t>> signature(task(t).items);
    std::uint32_t number = 0;
    for (const Pair& pair : pairs_)
      if (pair.before == t)
        for (const Needs& needs : pair.sets) {
          for (const ItemRange& range : needs)
            for (std::int64_t item = range.first; item < range.end; ++item)
              signature[static_cast<std::size_t>(item)].push_back(number);
          ++number;
        }
    if (number == 0) return;
    std::map<std::vector<std::uint32_t>, std::uint32_t> groups;
    std::vector<std::uint32_t> group_of;
    for (auto& each : signature)
      group_of.push_back(groups.emplace(std::move(each), static_cast<std::uint32_t>(groups.size())).first->second);
    if (too_many(t, group_of)) std::ranges::fill(group_of, 0u);
    const std::uint32_t most = *std::ranges::max_element(group_of) + 1;
    task(t).first_counter = schedule_.counters;
    task(t).counters = most;
    schedule_.counters += most;
    if (most == 1 || most == task(t).items) return;  // groups are numbered in the order of their first items
    task(t).raises = static_cast<std::uint32_t>(schedule_.raises.size());
    for (const std::uint32_t group : group_of) schedule_.raises.push_back(task(t).first_counter + group);
  }

  bool too_many(std::uint32_t t, const std::vector<std::uint32_t>& group_of) const {
    for (const Pair& pair : pairs_)
      if (pair.before == t && !pair.everything)
        for (const Needs& needs : pair.sets)
          if (std::set<std::uint32_t> groups; groups_in(needs, group_of, groups) > most_conditions) return true;
    return false;
  }

  static std::size_t groups_in(const Needs& needs, const std::vector<std::uint32_t>& group_of,
                               std::set<std::uint32_t>& groups) {
    for (const ItemRange& range : needs)
      for (std::int64_t item = range.first; item < range.end && groups.size() <= most_conditions; ++item)
        groups.insert(group_of[static_cast<std::size_t>(item)]);
    return groups.size();
  }

  /// Counters of a task and how often their items raise them, for what is needed of it.
  std::vector<SuperCondition> conditions_for(std::uint32_t before, const Needs& needs) {
    std::map<std::uint32_t, std::uint32_t> wanted;
    const SuperTask& earlier = task(before);
    if (earlier.counters == 1) {
      if (!needs.empty()) wanted[earlier.first_counter] = earlier.items;
    } else {
      for (const ItemRange& range : needs)
        for (std::int64_t item = range.first; item < range.end; ++item)
          ++wanted[schedule_.counter_of(earlier, static_cast<std::uint32_t>(item))];
    }
    std::vector<SuperCondition> list;
    for (const auto& [counter, at_least] : wanted) list.push_back({counter, at_least});
    return list;
  }

  void give_conditions(std::uint32_t t) {
    const auto position = [&] { return static_cast<std::uint32_t>(schedule_.conditions.size()); };
    const auto add = [&](const std::vector<SuperCondition>& list) {
      schedule_.conditions.insert(schedule_.conditions.end(), list.begin(), list.end());
    };
    std::vector<const Pair*> finer;
    task(t).first_condition = position();
    for (const Pair& pair : pairs_) {
      if (pair.after != t) continue;
      const bool same =
          pair.everything || (task(pair.before).counters == 1 && std::ranges::none_of(pair.sets, &Needs::empty));
      if (same) add(conditions_for(pair.before, {{0, task(pair.before).items}}));
      else finer.push_back(&pair);
    }
    task(t).conditions = position() - task(t).first_condition;
    if (finer.empty()) return;
    std::vector<std::vector<std::vector<SuperCondition>>> of_set;  // by pair and set
    for (const Pair* pair : finer) {
      of_set.emplace_back();
      for (const Needs& needs : pair->sets) of_set.back().push_back(conditions_for(pair->before, needs));
    }
    std::vector<std::uint32_t> begins;
    for (std::uint32_t item = 0; item < task(t).items; ++item) {
      begins.push_back(position());
      for (std::size_t p = 0; p < finer.size(); ++p) add(of_set[p][finer[p]->of_item[item]]);
    }
    begins.push_back(position());
    task(t).item_conditions = static_cast<std::uint32_t>(schedule_.item_conditions.size());
    schedule_.item_conditions.insert(schedule_.item_conditions.end(), begins.begin(), begins.end());
  }

  std::vector<LaunchOrder> orders() const {
    std::vector<LaunchOrder> list;
    for (const Pair& pair : pairs_) list.push_back({pair.before, pair.after});
    return list;
  }

  const Plan& plan_;
  std::size_t first_;
  SuperKernelOptions options_;
  SuperSchedule schedule_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::uint32_t SuperSchedule::counter_of(const SuperTask& task, std::uint32_t item) const {
  if (task.counters == 0 || item >= task.items - task.idle) return SuperTask::none;
  if (task.counters == 1) return task.first_counter;
  return task.raises == SuperTask::none ? task.first_counter + item : raises[task.raises + item];
}

std::span<const SuperCondition> SuperSchedule::conditions_of(const SuperTask& task, std::uint32_t item) const {
  if (task.item_conditions == SuperTask::none || item >= task.items - task.idle) return {};
  const std::uint32_t begin = item_conditions[task.item_conditions + item],
                      end = item_conditions[task.item_conditions + item + 1];
  return std::span(conditions).subspan(begin, end - begin);
}

SuperSchedule super_schedule(const Plan& plan, std::size_t first, std::size_t end, const SuperKernelOptions& options,
                             std::uint32_t blocks) {
  CERMET_ASSERT(first <= end && end <= plan.launches().size());
  return Scheduler(plan, first, end, options, blocks).run();
}

}  // namespace cermet
