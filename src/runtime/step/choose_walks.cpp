#include "runtime/step/choose_walks.hpp"

#include <algorithm>

#include "jit/walk.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/super_kernel/joinable_choice.hpp"
#include "runtime/super_kernel/walk_cost.hpp"

namespace cermet {
namespace {

/// What walks of steps are predicted to cost before their launches are known, at the symbols' maximum.
class Forecast {
 public:
  explicit Forecast(const Compilation& c)
      : c_(c), target_(*c.device.target()), limits_(limits_of(&target_)), root_(c.graph().values().size()) {
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = v;
    for (const std::int32_t view : c.views) {
      const Node& node = c.graph().nodes()[static_cast<std::size_t>(view)];
      for (const ValueId id : node.outputs)
        root_[static_cast<std::size_t>(id.index)] = root_[static_cast<std::size_t>(node.inputs[0].index)];
    }
  }

  /// Seconds that steps [first, first + choices.size()) lose as one launch. Only for kernels to choose: launches decide
  /// once more when they are there.
  double loss(std::size_t first, std::span<const Choice> choices) const {
    std::vector<DealtLaunch> launches;
    std::vector<std::vector<std::uint32_t>> needs;
    std::vector<std::int64_t> writer(root_.size(), -1);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      launches.push_back(launch_of(c_.region_of(first + i), choices[i]));
      needs.emplace_back();
      for (const ValueId id : c_.groups[first + i].operands)
        if (id && writer[root_of(id)] >= 0) needs.back().push_back(static_cast<std::uint32_t>(writer[root_of(id)]));
      for (const ValueId id : c_.groups[first + i].results) writer[root_of(id)] = static_cast<std::int64_t>(i);
    }
    return walk_cost(launches, needs, blocks(), jit::walk_in_flight, limits_, target_).loss();
  }

 private:
  std::uint32_t blocks() const { return static_cast<std::uint32_t>(target_.multiprocessors); }
  std::size_t root_of(ValueId id) const { return root_[static_cast<std::size_t>(id.index)]; }

  /// Kernels along rows have an item for each row, others are taken to need all blocks, so that nothing lies beside
  /// them. So are those of sizes that vary: with fewer rows than the most, launches might lose, and would be left with
  /// kernels that were chosen for a walk.
  DealtLaunch launch_of(const Region& region, const Choice& choice) const {
    const std::vector<cuda::Program> programs =
        choice.kernel->programs ? choice.kernel->programs(region, choice.config) : std::vector<cuda::Program>();
    std::int64_t items = blocks();
    if (!programs.empty() && programs.front().held_columns && region.problem().input(0).is_constant()) {
      items = 1;
      for (int axis = 0; axis + 1 < region.problem().input(0).rank(); ++axis) items *= region.problem().size(0, axis);
    }
    const auto count = static_cast<std::uint32_t>(std::clamp<std::int64_t>(items, 1, 1 << 24));
    return {count, item_seconds(region, cost_of(region), count), !programs.empty() && programs.front().streams()};
  }

  const Compilation& c_;
  const Target& target_;
  DeviceLimits limits_;
  std::vector<std::size_t> root_;  ///< by value: whose memory it shares
};

bool joins(const Region& region, const Choice& choice) {
  if (!choice.kernel->programs) return false;
  const std::vector<cuda::Program> programs = choice.kernel->programs(region, choice.config);
  return !programs.empty() && !jit::declines_walk(programs.front());
}

/// Notes what steps [first, end) would lose as one launch, with those that have another kernel or configuration to join
/// it with.
void note_loss(Compilation& c, std::size_t first, std::size_t end, double seconds) {
  for (std::size_t step = first; step < end; ++step) {
    const Choice& own = c.choices[step];
    Choice other = own;
    choose_joinable(c.region_of(step), other);
    if ((other.kernel != own.kernel || other.config != own.config) && joins(c.region_of(step), other))
      c.walk_losses[step] = seconds;
  }
}

/// Steps [first, end) of one super-kernel that was not asked to be linked. To choose kernels that join takes long, so
/// those of single launches are looked at first.
void choose_faster(Compilation& c, const Forecast& forecast, std::size_t first, std::size_t end) {
  if (const double loss = forecast.loss(first, std::span(c.choices).subspan(first, end - first)); loss >= 0)
    return note_loss(c, first, end, loss);
  std::vector<Choice> choices(c.choices.begin() + static_cast<std::ptrdiff_t>(first),
                              c.choices.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::size_t i = 0; i < choices.size(); ++i) choose_joinable(c.region_of(first + i), choices[i]);
  for (std::size_t from = 0, to; from < choices.size(); from = to) {
    for (to = from; to < choices.size() && joins(c.region_of(first + to), choices[to]);) ++to;
    if (to == from) {
      ++to;
      continue;
    }
    if (const double loss = forecast.loss(first + from, std::span(choices).subspan(from, to - from)); loss >= 0) {
      note_loss(c, first + from, first + to, loss);
      continue;
    }
    for (std::size_t i = from; i < to; ++i) c.choices[first + i] = choices[i], c.walked[first + i] = true;
  }
}

}  // namespace

std::optional<SuperKernelOptions> Compilation::options_of(const Node& node) const {
  if (node.super_kernel < 0 || !device.target() || !jit::can_walk(*device.target())) return {};
  return SuperKernelOptions::parse(graph().super_kernels()[static_cast<std::size_t>(node.super_kernel)].options);
}

void choose_walks(Compilation& c) {
  c.walked.assign(c.choices.size(), false);
  c.walk_losses.assign(c.choices.size(), 0);
  std::optional<Forecast> forecast;
  for (std::size_t first = 0, end; first < c.choices.size(); first = end) {
    const Node& node = c.node_of(first);
    for (end = first + 1; end < c.choices.size() && c.node_of(end).super_kernel == node.super_kernel;) ++end;
    const auto options = c.options_of(node);
    if (!options) continue;
    if (links_at_a_loss(*options)) {
      for (std::size_t step = first; step < end; ++step)
        choose_joinable(c.region_of(step), c.choices[step]), c.walked[step] = true;
    } else if (!goes_in_turn(*options)) {
      if (!forecast) forecast.emplace(c);
      choose_faster(c, *forecast, first, end);
    }
  }
}

}  // namespace cermet
