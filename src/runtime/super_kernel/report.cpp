#include "runtime/super_kernel/report.hpp"

#include <cmath>

#include "runtime/super_kernel/deal.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/table.hpp"

namespace cermet {
namespace {

/// "3 all of 1, 2 to 4 counters each": what a task's items wait for.
std::string waits_text(const SuperSchedule& schedule, const SuperTask& task) {
  std::string text = task.conditions > 0 ? fmt::format("{}", task.conditions) : "";
  if (task.item_conditions == SuperTask::none) return text.empty() ? "-" : text;
  std::size_t least = ~std::size_t{0}, most = 0;
  for (std::uint32_t item = 0; item < task.items; ++item) {
    const std::size_t count = schedule.conditions_of(task, item).size();
    least = std::min(least, count), most = std::max(most, count);
  }
  const std::string each = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
  return text.empty() ? fmt::format("{} each", each) : fmt::format("{} + {} each", text, each);
}

/// "0, 3-5": tasks whose counters a task waits for.
std::string tasks_text(const SuperSchedule& schedule, std::uint32_t t) {
  std::vector<bool> waits(schedule.tasks.size());
  const auto note = [&](std::span<const SuperCondition> conditions) {
    for (const SuperCondition& condition : conditions)
      for (std::uint32_t before = 0; before < t; ++before) {
        const SuperTask& task = schedule.tasks[before];
        if (condition.counter >= task.first_counter && condition.counter < task.first_counter + task.counters)
          waits[before] = true;
      }
  };
  note(schedule.conditions_of(schedule.tasks[t]));
  for (std::uint32_t item = 0; item < schedule.tasks[t].items; ++item)
    note(schedule.conditions_of(schedule.tasks[t], item));
  std::string text;
  for (std::uint32_t before = 0; before < t; ++before)
    if (waits[before]) text += fmt::format("{}{}", text.empty() ? "" : ",", schedule.tasks[before].launch);
  return text.empty() ? "-" : text;
}

/// "8-15": by launch of a region, which blocks of a GPU's walk have items of it.
std::vector<std::string> blocks_text(Executable& executable, const SuperRegion& region) {
  const Plan& plan = executable.plan();
  const std::size_t count = region.end_launch - region.first_launch;
  const std::vector<DealtLaunch> dealt = executable.dealt_launches(region);
  const std::vector<std::uint32_t> first =
      first_blocks(dealt, region_needs(plan, region.first_launch, count, goes_in_turn(region.options)), region.blocks);
  std::vector<std::string> list;
  for (std::size_t l = 0; l < count; ++l) {
    const std::uint32_t taken = std::min(dealt[l].items, region.blocks),
                        last = (first[l] + std::max(1u, taken) - 1) % region.blocks;
    list.push_back(taken == region.blocks ? "all"
                   : taken == 0           ? "-"
                   : taken == 1           ? std::to_string(last)
                                          : fmt::format("{}-{}", first[l], last));
  }
  return list;
}

std::string prediction_text(Executable& executable, const SuperRegion& region) {
  const std::optional<double> loss = executable.predicted_loss(region);
  if (!loss) return "";
  const std::string_view then = *loss < 0 ? "it is linked, unless too many registers spill"
                                : links_at_a_loss(region.options)
                                    ? "it is linked all the same"
                                    : "it declines (loss), and its launches run by themselves";
  return fmt::format("as one launch of a GPU predicted to take {:.1f} us {}: {}\n", std::abs(*loss) * 1e6,
                     *loss < 0 ? "less" : "more", then);
}

std::string region_text(Executable& executable, const SuperRegion& region) {
  const Plan& plan = executable.plan();
  const std::span<const StepInfo> steps = executable.steps();
  const SuperSchedule schedule =
      super_schedule(plan, region.first_launch, region.end_launch, region.options, region.blocks);
  std::vector<TableRow> rows{{"launch", "scope", "kernel", "items", "raises", "counters", "waits for", "conditions"}};
  const std::vector<std::string> blocks =
      region.blocks > 0 ? blocks_text(executable, region) : std::vector<std::string>();
  if (!blocks.empty()) rows[0].emplace_back("blocks");
  std::size_t items = 0;
  for (std::uint32_t t = 0; t < schedule.tasks.size(); ++t) {
    const SuperTask& task = schedule.tasks[t];
    const StepInfo& step = steps[plan.launches()[task.launch].step];
    items += task.items;
    rows.push_back({std::to_string(task.launch), step.scope.empty() ? "-" : step.scope, step.kernel,
                    std::to_string(task.items), name_of(raised_by(task)), std::to_string(task.counters),
                    tasks_text(schedule, t), waits_text(schedule, task)});
    if (!blocks.empty()) rows.back().push_back(blocks[t]);
  }
  const std::string options = to_string(region.options);
  return fmt::format("super-kernel {}{}: launches {} to {}, {} items, {} counters\n{}{}", region.name,
                     options.empty() ? "" : " (" + options + ")", region.first_launch, region.end_launch - 1, items,
                     schedule.counters, prediction_text(executable, region), table_text(rows, 3));
}

}  // namespace

WaitsFor raised_by(const SuperTask& task) {
  if (task.counters == 0) return WaitsFor::nothing;
  if (task.counters == 1) return WaitsFor::all;
  return task.raises == SuperTask::none ? WaitsFor::tiles : WaitsFor::rows;
}

std::string super_kernel_text(Executable& executable) {
  const SuperFormation* const formation = executable.super_kernels();
  if (!formation) return "";
  std::string text;
  for (const SuperRegion& region : formation->regions)
    text += (text.empty() ? "" : "\n") + region_text(executable, region);
  for (const SuperBreak& found : formation->breaks)
    text +=
        fmt::format("super-kernel {} breaks at {}\n", found.name, text_of(found, executable.steps()[found.step].scope));
  return text;
}

}  // namespace cermet
