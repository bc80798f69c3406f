// Regions of a plan on a GPU: linked when the plan is first captured, then one launch each.
#include <utility>

#include "base/log.hpp"
#include "kernel/communicator.hpp"
#include "kernel/cuda/peer_memory.hpp"
#include "runtime/executable_state.hpp"
#include "runtime/super_kernel/deal.hpp"
#include "runtime/super_kernel/walk_cost.hpp"

namespace cermet {
namespace {

/// Whether a region's launches are left as they are, because they are faster so; says so once.
bool declines_loss(const SuperRegion& region, const WalkCost& cost, bool& reported) {
  if (links_at_a_loss(region.options) || cost.loss() < 0) return false;
  const auto us = [](double seconds) { return fmt::format("{:.0f}", seconds * 1e6); };
  std::string figures =
      fmt::format("{} us a run; its boundaries and bodies take {} us", us(cost.loss()), us(cost.walk));
  constexpr double shown = 0.5e-6;
  if (cost.spills >= shown) figures += fmt::format(", {} of registers that spill", us(cost.spills));
  if (cost.saved >= shown) figures += fmt::format(", less {} of branches side by side", us(cost.saved));
  const SuperReasonInfo& info = info_of(SuperReason::loss);
  const std::string text = fmt::format(
      "super-kernel '{}': launches {} to {}: {}: {} ({}; boundaries of launches {}); {}", region.name,
      region.first_launch, region.end_launch - 1, info.id, info.sentence, figures, us(cost.graph), info.advice);
  if (region.options.strict_scope_check == StrictScopeCheck::abort) fail(Status::unsupported, "{}", text);
  if (!std::exchange(reported, true)) log().warn("{}", text);
  return true;
}

/// A task may wait for other ranks as long as their group allows, and blocks of all ranks of a device must be resident
/// at the same time.
void share_device(Communicator& group, const Target& target, DeviceRegionOptions& options) {
  const cuda::PeerMemory* const memory = group.peer_memory();
  if (!memory) return;
  options.patience = std::max(options.patience, static_cast<std::uint64_t>((memory->timeout() + 2) * 1e9));
  if (memory->ranks_on_device() == 1) return;
  const std::int64_t most = std::max(1, target.multiprocessors / memory->ranks_on_device());
  options.width = options.width > 0 ? std::min(options.width, most) : most;
}

}  // namespace

std::vector<DealtLaunch> Executable::State::dealt_launches(const SuperRegion& region) {
  std::vector<DealtLaunch> dealt;
  for (std::size_t l = region.first_launch; l < region.end_launch; ++l) {
    const Launch& launch = plan.launches()[l];
    dealt.push_back(
        {launch.items,
         begins_step(plan, l) ? item_seconds(infos[launch.step].region, work_of(launch.step), launch.items) : 0,
         super->programs[launch.step][launch.program].streams()});
  }
  return dealt;
}

WalkCost Executable::State::cost_of(const SuperRegion& region) {
  const std::vector<DealtLaunch> dealt = dealt_launches(region);
  const auto needs = region_needs(plan, region.first_launch, dealt.size(), goes_in_turn(region.options));
  const Target& target = *infos[region.first_step].region.target();
  return walk_cost(dealt, needs, region.blocks, jit::walk_in_flight, limits_of(&target), target);
}

std::vector<DealtLaunch> Executable::dealt_launches(const SuperRegion& region) {
  plan();
  return state_->dealt_launches(region);
}

std::optional<double> Executable::predicted_loss(const SuperRegion& region) {
  plan();
  if (region.blocks == 0 || region.end_launch - region.first_launch < 2) return std::nullopt;
  return state_->cost_of(region).loss();
}

/// What joins of the present plan, made anew with what each launch touches. A region of one launch is launched as it
/// is.
std::vector<std::unique_ptr<DeviceRegion>> Executable::State::make_device_regions() {
  if (!ranges_planned) {
    make_plan(true);
    plan_ranges();
  }
  std::vector<std::unique_ptr<DeviceRegion>> made;
  for (const SuperRegion& region : super->formation.regions) {
    const std::size_t count = region.end_launch - region.first_launch;
    if (count < 2) continue;
    const std::vector<DealtLaunch> dealt = dealt_launches(region);
    std::vector<RegionLaunch> launches;
    for (std::size_t l = region.first_launch; l < region.end_launch; ++l) {
      const Launch& launch = plan.launches()[l];
      const StepInfo& info = infos[launch.step];
      launches.push_back({&super->programs[launch.step][launch.program],
                          info.scope.empty() ? info.kernel : info.scope + " " + info.kernel,
                          dealt[l - region.first_launch].item_seconds});
    }
    WalkCost cost = cost_of(region);
    if (declines_loss(region, cost, super->loss_reported)) continue;
    DeviceRegionOptions options{.width = region.options.width,
                                .debug_sync_all = goes_in_turn(region.options),
                                .prefetch = region.options.prefetch,
                                .early_start = region.options.early_start,
                                .profile = region.options.profile};
    for (std::size_t l = region.first_launch; l < region.end_launch; ++l)
      if (Communicator* const group = steps[plan.launches()[l].step].communicator)
        share_device(*group, *queue.device->target(), options);
    try {
      made.push_back(std::make_unique<DeviceRegion>(plan, region.first_launch, launches, queue, options));
    } catch (const Error& error) {
      if (error.status() != Status::unsupported || region.options.strict_scope_check == StrictScopeCheck::abort) throw;
      log().warn("super-kernel '{}': {}; its launches run by themselves", region.name, error.what());
      continue;
    }
    log().info("super-kernel '{}': launches {} to {} in one, {} stages of {} bytes, {} registers, {} bytes spilled",
               region.name, region.first_launch, region.end_launch - 1, made.back()->shape().stages,
               made.back()->shape().pitch, made.back()->registers(), made.back()->spilled_bytes());
    cost.spills = spill_seconds(count, made.back()->spilled_bytes());
    if (declines_loss(region, cost, super->loss_reported)) {
      queue.stream->synchronize();  // which still writes to the region's memory
      made.pop_back();
    }
  }
  return made;
}

/// The same for runs that follow. Launches that say what they touch publish no results early: where nothing joins, the
/// plan is made once more without.
std::vector<std::unique_ptr<DeviceRegion>> Executable::State::link_regions() {
  std::vector<std::unique_ptr<DeviceRegion>> made = make_device_regions();
  if (made.empty()) make_plan();
  return made;
}

/// A row of runs: all launches, those of a region at once in place of its first. A region of all launches goes round by
/// itself.
void Executable::State::launch_rows(std::span<const std::unique_ptr<DeviceRegion>> regions) {
  if (regions.size() == 1 && regions.front()->count() == wanted_launches().size())
    return regions.front()->enqueue(*queue.stream, static_cast<std::uint32_t>(row));
  for (std::int64_t i = 0; i < row; ++i) launch_regions(regions);
}

void Executable::State::launch_regions(std::span<const std::unique_ptr<DeviceRegion>> regions) {
  const std::span<const Launch> all = wanted_launches();
  for (std::size_t next = 0; next < all.size();) {
    if (!regions.empty() && regions.front()->first() == next) {
      regions.front()->enqueue(*queue.stream);
      next += regions.front()->count();
      regions = regions.subspan(1);
    } else {
      execute(all[next++]);
    }
  }
}

void Executable::check_waits() {
  if (state_->stream) state_->captures.check_waits(*state_->stream);
}

std::span<const std::unique_ptr<DeviceRegion>> Executable::linked_regions() const {
  const CapturedRun* const replayed = state_->captures.replayed;
  return replayed ? std::span<const std::unique_ptr<DeviceRegion>>(replayed->regions)
                  : std::span<const std::unique_ptr<DeviceRegion>>();
}

}  // namespace cermet
