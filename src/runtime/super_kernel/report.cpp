#include "runtime/super_kernel/report.hpp"

#include <cmath>

#include "runtime/super_kernel/deal.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/table.hpp"

namespace cermet {
namespace {

/// "8-15": by launch of a region, which blocks of a GPU's walk have items of it.
std::vector<std::string> blocks_text(Executable& executable, const SuperRegion& region,
                                     const std::vector<std::vector<std::uint32_t>>& needs) {
  const std::vector<DealtLaunch> dealt = executable.dealt_launches(region);
  const std::vector<std::uint32_t> first = first_blocks(dealt, needs, region.blocks);
  std::vector<std::string> list;
  for (std::size_t l = 0; l < needs.size(); ++l) {
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
  const auto needs =
      region_needs(plan, region.first_launch, region.end_launch - region.first_launch, goes_in_turn(region.options));
  std::vector<TableRow> rows{{"launch", "scope", "kernel", "items", "waits for"}};
  const std::vector<std::string> blocks =
      region.blocks > 0 ? blocks_text(executable, region, needs) : std::vector<std::string>();
  if (!blocks.empty()) rows[0].emplace_back("blocks");
  std::size_t all_items = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const std::size_t l = region.first_launch + i;
    const Launch& launch = plan.launches()[l];
    const StepInfo& step = steps[launch.step];
    const std::uint32_t items = std::max(1u, launch.items);
    all_items += items;
    std::vector<std::size_t> waits(needs[i].begin(), needs[i].end());
    for (std::size_t& before : waits) before += region.first_launch;
    rows.push_back({std::to_string(l), step.scope.empty() ? "-" : step.scope, step.kernel, std::to_string(items),
                    waits.empty() ? "-" : fmt::format("{}", fmt::join(waits, ","))});
    if (!blocks.empty()) rows.back().push_back(blocks[i]);
  }
  const std::string options = to_string(region.options);
  return fmt::format("super-kernel {}{}: launches {} to {}, {} items\n{}{}", region.name,
                     options.empty() ? "" : " (" + options + ")", region.first_launch, region.end_launch - 1, all_items,
                     prediction_text(executable, region), table_text(rows, 3));
}

}  // namespace

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
