// What a super-kernel does, as arrays that can be copied to a device: its tasks, the order in which their items are
// taken, and what each item waits for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/plan.hpp"
#include "graph/super_kernel_options.hpp"

namespace cermet {

/// An item may start when the counter has reached `at_least`.
struct SuperCondition {
  std::uint32_t counter = 0, at_least = 0;
  friend bool operator==(const SuperCondition&, const SuperCondition&) = default;
};

/// One launch of the plan. Its items raise counters when they have stored what they make: none where nobody waits for
/// them, else each one of the task's.
struct SuperTask {
  static constexpr std::uint32_t none = 0xffffffff;

  std::uint32_t launch = 0;  ///< of the plan
  std::uint32_t items = 1;   ///< a launch without items is one
  std::uint32_t first_counter = 0,
                counters = 0;  ///< 1: all items raise the same (all); as many as items: item i raises the i-th (tiles)
  std::uint32_t raises =
      none;  ///< of other numbers (rows): where in `raises` of the schedule the counters of its items stand
  std::uint32_t first_condition = 0, conditions = 0;  ///< for which every item waits
  std::uint32_t item_conditions =
      none;  ///< where in `item_conditions` its items' stand: those of item i from [i] to before [i + 1]
  std::uint32_t barriers = 0;  ///< how often all of its items wait for each other: they must run at once
  std::uint32_t idle = 0;      ///< of its items, the last ones, which only take part in barriers (feed-sync-all)
  friend bool operator==(const SuperTask&, const SuperTask&) = default;
};

/// Items of a task that are taken together, one after the other.
struct SuperChunk {
  std::uint32_t task = 0, first = 0, count = 0;
  friend bool operator==(const SuperChunk&, const SuperChunk&) = default;
};

struct SuperSchedule {
  std::vector<SuperTask> tasks;  ///< in the order of the plan: conditions name counters of earlier ones
  std::vector<SuperCondition> conditions;
  std::vector<std::uint32_t> item_conditions;  ///< positions in `conditions`
  std::vector<std::uint32_t> raises;           ///< counters
  std::vector<SuperChunk> order;               ///< who takes items in this order never waits for one that comes later
  std::uint32_t counters = 0;                  ///< zeros before the first run
  std::uint32_t width = 0;                     ///< blocks of the region; 0 where nobody said

  std::uint32_t counter_of(const SuperTask& task, std::uint32_t item) const;  ///< SuperTask::none where it raises none
  std::span<const SuperCondition> conditions_of(const SuperTask& task) const {
    return std::span(conditions).subspan(task.first_condition, task.conditions);
  }
  /// What one of its items waits for besides.
  std::span<const SuperCondition> conditions_of(const SuperTask& task, std::uint32_t item) const;
};

/// The schedule of launches [first, end) of a plan that says what they touch (Plan::wants_ranges). An item waits for
/// the items that write what it reads or writes, or read what it writes, and for more only where telling them apart
/// would take more than a few counters. `blocks`: of the region, which tasks whose items wait for each other fill with
/// feed-sync-all; 0: SuperKernelOptions::width.
SuperSchedule super_schedule(const Plan& plan, std::size_t first, std::size_t end,
                             const SuperKernelOptions& options = {}, std::uint32_t blocks = 0);

}  // namespace cermet
