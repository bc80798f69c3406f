#include "runtime/super_kernel/device_region.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/env.hpp"
#include "runtime/overlap.hpp"
#include "runtime/super_kernel/deal.hpp"

namespace cermet {
namespace {

constexpr std::int64_t params_alignment = 128;  ///< so that a tensor map begins a line

template <class T>
void put(std::vector<std::byte>& bytes, std::int64_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// Instances, needs, then parameters, as walk::Params describes them.
struct Table {
  std::vector<std::byte> bytes;
  std::vector<walk::Instance> instances;
  std::vector<std::int64_t> params_at;  ///< by instance
  std::uint32_t needs = 0, carried = 0;
  std::int64_t meeting_bytes = 0;  ///< of all instances, both areas of each

  Table(const Plan& plan, std::size_t first, std::span<const std::uint32_t> bodies,
        std::span<const cuda::Program> programs, std::uint32_t blocks, std::span<const std::uint32_t> first_block,
        const std::vector<std::vector<std::uint32_t>>& wanted, const DeviceRegionOptions& options, bool shares_ring) {
    const std::size_t count = bodies.size();
    const std::vector<std::uint32_t> ends = region_ends(wanted);
    carried = static_cast<std::uint32_t>(ends.size());
    needs = carried;
    for (const auto& list : wanted) needs += static_cast<std::uint32_t>(list.size());
    const auto needs_at = static_cast<std::int64_t>(count * sizeof(walk::Instance));
    std::int64_t end = round_up(needs_at + std::int64_t{4} * needs, params_alignment);
    for (std::size_t i = 0; i < count; ++i) {
      params_at.push_back(end);
      end += round_up(static_cast<std::int64_t>(plan.parameters(plan.launches()[first + i]).size()), params_alignment);
    }
    bytes.resize(static_cast<std::size_t>(end));
    std::uint32_t need = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Launch& launch = plan.launches()[first + i];
      const walk::Instance instance{.params = 0,
                                    .items = launch.items,
                                    .body = bodies[i],
                                    .first_need = need,
                                    .needs = static_cast<std::uint32_t>(wanted[i].size()),
                                    .arrivals = std::min(launch.items, blocks),
                                    .streams = shares_ring && programs[i].streams(),
                                    .early = options.early_start,
                                    .first_block = static_cast<std::uint16_t>(first_block[i]),
                                    .meeting = static_cast<std::uint64_t>(meeting_bytes),
                                    .meeting_bytes = static_cast<std::uint32_t>(
                                        programs[i].walk ? programs[i].walk->meeting_bytes * launch.items : 0),
                                    .feeds_after = options.prefetch ? 0 : static_cast<std::uint32_t>(i)};
      meeting_bytes += 2 * static_cast<std::int64_t>(instance.meeting_bytes);
      instances.push_back(instance);
      for (const std::uint32_t one : wanted[i]) put(bytes, needs_at + 4 * std::int64_t{need++}, one);
      const auto parameters = plan.parameters(launch);
      if (!parameters.empty()) std::memcpy(bytes.data() + params_at[i], parameters.data(), parameters.size());
    }
    for (const std::uint32_t last : ends) put(bytes, needs_at + 4 * std::int64_t{need++}, last);
  }
  /// Addresses, once it is known where the table will be, and where items meet.
  void settle(const std::byte* base, const std::byte* meeting) {
    for (std::size_t i = 0; i < params_at.size(); ++i) {
      walk::Instance instance = instances[i];
      instance.params = reinterpret_cast<std::uint64_t>(base + params_at[i]);
      instance.meeting += reinterpret_cast<std::uint64_t>(meeting);
      put(bytes, static_cast<std::int64_t>(i * sizeof instance), instance);
    }
  }
};

}  // namespace

bool links_at_a_loss(const SuperKernelOptions& options) {
  return options.debug_sync_all || options.profile || options.width > 0;
}

bool goes_in_turn(const SuperKernelOptions& options) { return options.debug_sync_all || !options.stream_fusion; }

bool begins_step(const Plan& plan, std::size_t launch) {
  return launch == 0 || plan.launches()[launch - 1].step != plan.launches()[launch].step;
}

std::vector<std::vector<std::uint32_t>> region_needs(const Plan& plan, std::size_t first, std::size_t count,
                                                     bool all_before) {
  std::vector<std::vector<std::uint32_t>> needs(count);
  if (all_before) {
    for (std::size_t i = 1; i < count; ++i) needs[i] = {static_cast<std::uint32_t>(i - 1)};
    return needs;
  }
  for (const LaunchOrder& order : dependencies_of(plan))
    if (order.before >= first && order.after < first + count)
      needs[order.after - first].push_back(order.before - static_cast<std::uint32_t>(first));
  for (auto& list : needs) std::ranges::sort(list);
  return needs;
}

std::vector<std::uint32_t> region_ends(const std::vector<std::vector<std::uint32_t>>& needs) {
  std::vector<bool> is_needed(needs.size());
  for (const auto& list : needs)
    for (const std::uint32_t need : list) is_needed[need] = true;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 0; i < needs.size(); ++i)
    if (!is_needed[i]) ends.push_back(i);
  return ends;
}

DeviceRegion::DeviceRegion(const Plan& plan, std::size_t first, std::span<const RegionLaunch> launches,
                           const DeviceQueue& queue, const DeviceRegionOptions& options)
    : first_(first) {
  const Target& target = *queue.device->target();
  const auto needs = region_needs(plan, first, launches.size(), options.debug_sync_all);
  std::vector<cuda::Program> programs;
  std::int64_t all_needs = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    programs.push_back(*launches[i].program);
    names_.push_back(launches[i].name);
    all_needs += static_cast<std::int64_t>(needs[i].size());
    const std::size_t bytes = plan.parameters(plan.launches()[first + i]).size();
    require(bytes <= walk::most_params, "super-kernel: expected at most {} bytes of parameters, found {} of {}",
            walk::most_params, bytes, names_.back());
  }
  all_needs += std::ssize(region_ends(needs));
  shape_ = jit::walk_shape(programs, target, static_cast<std::int64_t>(launches.size()), all_needs);
  const jit::WalkImage image = jit::link_walk(programs, shape_, target);
  const std::int64_t shared = shape_.shared_bytes(static_cast<std::int64_t>(launches.size()), all_needs);
  loaded_ = queue.device->load(image.image.bytes, jit::entry_name, shape_.threads, shared);
  if (queue.device->computes() && loaded_.blocks_per_multiprocessor < 1)
    fail(Status::unsupported,
         "super-kernel: expected a block of {} threads, {} registers each, and {} bytes of shared memory to fit on an "
         "SM of {}, found none",
         shape_.threads, loaded_.registers, shared, target.name);
  const auto blocks = static_cast<std::uint32_t>(
      options.width > 0 ? std::min<std::int64_t>(options.width, target.multiprocessors) : target.multiprocessors);
  launch_ = {.blocks = blocks,
             .threads = static_cast<std::uint32_t>(shape_.threads),
             .shared_bytes = static_cast<std::uint32_t>(shared),
             .together = true};

  std::vector<DealtLaunch> dealt;
  for (std::size_t i = 0; i < launches.size(); ++i)
    dealt.push_back({plan.launches()[first + i].items, launches[i].item_seconds});
  Table table(plan, first, image.bodies, programs, blocks, first_blocks(dealt, needs, blocks), needs, options,
              shape_.stages > 0);
  instances_ = table.instances;
  table_ = queue.device->allocate(static_cast<std::int64_t>(table.bytes.size()));
  if (table.meeting_bytes > 0) meeting_ = queue.device->allocate(table.meeting_bytes);
  table.settle(table_.data(), meeting_.data());
  queue.stream->upload(table_.data(), table.bytes.data(), table_.size());
  counters_ = queue.device->allocate((walk::first_counter + static_cast<std::int64_t>(launches.size())) *
                                     walk::counter_pitch * 4);
  reset(*queue.stream);
  stuck_ = queue.device->allocate_host(sizeof(walk::Stuck));
  *reinterpret_cast<walk::Stuck*>(stuck_.data()) = {};
  progress_ = queue.device->allocate(std::int64_t{4} * blocks);
  queue.stream->fill(progress_.data(), 0, progress_.size());
  if (options.profile)
    times_ = queue.device->allocate(static_cast<std::int64_t>(blocks * launches.size() * sizeof(walk::Times)));
  if (options.profile) queue.stream->fill(times_.data(), 0, times_.size());
  queue.stream->synchronize();  // the table's memory on the host ends here
  params_ = {.instances = reinterpret_cast<const walk::Instance*>(table_.data()),
             .count = static_cast<std::uint32_t>(launches.size()),
             .needs = table.needs,
             .progress = reinterpret_cast<std::uint32_t*>(progress_.data()),
             .rounds = 1,
             .carried = table.carried,
             .counters = reinterpret_cast<std::uint32_t*>(counters_.data()),
             .stuck = reinterpret_cast<walk::Stuck*>(stuck_.data()),
             .times = reinterpret_cast<walk::Times*>(times_.data()),
             .patience = options.patience};
  const double deadline =
      options.deadline < 0 ? static_cast<double>(env::integer(env::Name::CERMET_WALK_TIMEOUT)) : options.deadline;
  if (queue.device->computes() && deadline > 0)
    watch_ = std::make_unique<RegionWatch>(*queue.device,
                                           WatchedRegion{params_.stuck, progress_.data(), blocks, names_, deadline});
}

void DeviceRegion::enqueue(Stream& stream, std::uint32_t rounds) const {
  walk::Params params = params_;
  params.rounds = rounds;
  std::uint32_t unused = 0;
  void* arguments[]{&params, &unused};
  stream.launch(launch_, loaded_.function, arguments);
}

std::string DeviceRegion::take_stuck() {
  auto& found = *reinterpret_cast<volatile walk::Stuck*>(stuck_.data());
  if (found.happened == 0) return {};
  found.happened = 0;
  return fmt::format(
      "super-kernel: block {} of {} waited {:.1f} s for {}: expected {} blocks to have ended it, found {}",
      std::uint32_t{found.block}, names_[found.instance], static_cast<double>(params_.patience) * 1e-9,
      names_[found.need], std::uint32_t{found.wanted}, static_cast<std::int32_t>(found.found));
}

void DeviceRegion::reset(Stream& stream) {
  stream.fill(counters_.data(), 0, counters_.size());
  if (meeting_.size() > 0) stream.fill(meeting_.data(), 0xff, meeting_.size());  // meeting::absent
}

std::byte* DeviceRegion::counter(std::size_t launch) const {
  return counters_.data() + (walk::first_counter + launch) * walk::counter_pitch * sizeof(std::uint32_t);
}

std::vector<walk::Times> DeviceRegion::times(Stream& stream) const {
  std::vector<walk::Times> list(static_cast<std::size_t>(times_.size()) / sizeof(walk::Times));
  if (list.empty()) return list;
  stream.synchronize();
  stream.download(list.data(), times_.data(), times_.size());
  stream.synchronize();
  return list;
}

}  // namespace cermet
