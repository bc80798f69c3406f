#include "kernel/cpu/rowwise/channel_region.hpp"

#include <algorithm>

#include "kernel/cpu/before_anchor.hpp"
#include "kernel/step_builder.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cpu {
namespace {

/// Whether a node moves the channels of an image, from the back to the front or the other way.
bool moves_channels(const Problem& p, bool to_front) {
  if (p.op->kind != OpKind::transpose || p.input(0).rank() < 3) return false;
  const Ints& permutation = p.attributes.integers("permutation");
  const auto rank = static_cast<std::int64_t>(p.input(0).rank());
  for (std::int64_t a = 0; a < static_cast<std::int64_t>(permutation.size()); ++a) {
    const std::int64_t wanted = a == 0 ? 0 : to_front ? (a == 1 ? rank - 1 : a - 1) : (a == rank - 1 ? 1 : a + 1);
    if (permutation[static_cast<std::size_t>(a)] != wanted) return false;
  }
  return !permutation.empty();
}

bool joins_last_axis(const Problem& p) {
  return p.op->kind == OpKind::concat &&
         wrap_axis(p.attributes.integer("axis"), p.input(0).rank()) == p.input(0).rank() - 1;
}

/// Whether a node's first operand is what the node before it gives, as it is stored, and no other comes from inside.
bool reads_node_before(const Region& region, std::size_t n) {
  const std::vector<RegionInput>& inputs = region.nodes[n].inputs;
  return inputs[0] == RegionInput::inside(n - 1, 0, Rounding::strict) &&
         std::ranges::count_if(inputs, &RegionInput::is_inside) == 1;
}

Decline declines_before(const Region& region) {
  const auto anchor = static_cast<std::size_t>(region.anchor);
  if (anchor == 0) return std::nullopt;
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before {}: {}", region.nodes[anchor - 1].problem.op->name, region.problem().op->name, why);
  };
  if (!moves_channels(region.nodes[anchor - 1].problem, true))
    return fails("only channels that are moved to the front can precede");
  if (anchor > 2 || (anchor == 2 && !joins_last_axis(region.nodes[0].problem)))
    return fails("only a concat of channels comes before that");
  for (std::size_t n = 1; n <= anchor; ++n)
    if (!reads_node_before(region, n)) return fails("it is read as more than x");
  const auto leaves = [&](const RegionPlace& place) { return place.node + 1 == region.anchor; };
  return std::ranges::any_of(region.results, leaves) ? fails("others read it, too") : std::nullopt;
}

Decline declines_behind(const Region& region) {
  const auto anchor = static_cast<std::size_t>(region.anchor);
  std::size_t last = region.nodes.size() - 1;
  if (last > anchor && moves_channels(region.nodes[last].problem, false)) --last;
  if (last > anchor + 1) return "one activation at most follows the normalization";
  if (last > anchor) {
    const Problem& p = region.nodes[last].problem;
    if (!is_elementwise(p.op->kind) || p.inputs.size() != 1) return fmt::format("{} is no activation", p.op->name);
    if (p.input(0).dtype != p.outputs[0].dtype) return "it works in place, on what was stored";
    if (!kernel_without_workspace(p)) return "no kernel computes it";
  }
  for (std::size_t n = anchor + 1; n < region.nodes.size(); ++n)
    if (!reads_node_before(region, n)) return "it works in place, on what was stored";
  const auto leaves = [&](const RegionPlace& place) {
    return place.node >= region.anchor && place.node + 1 != std::ssize(region.nodes);
  };
  return std::ranges::any_of(region.results, leaves) ? Decline("others read what is normalized, too") : std::nullopt;
}

}  // namespace

Decline ChannelRegion::declines(const Region& region) {
  if (Decline reason = declines_before(region)) return reason;
  return declines_behind(region);
}

ChannelRegion::ChannelRegion(const Region& region)
    : groups(region.problem().op->kind == OpKind::group_norm ? region.problem().attributes.integer("groups") : 0),
      weight(region.operand_of(1)),
      bias(region.operand_of(2)) {
  const auto anchor = static_cast<std::size_t>(region.anchor);
  for (std::size_t i = 0; i < region.nodes[0].inputs.size() && (i == 0 || anchor == 2); ++i)
    parts.push_back(*region.operand_of(0, i));
  from_last = anchor > 0;
  to_last = region.nodes.back().problem.op->kind == OpKind::transpose;
  if (region.nodes.size() - (to_last ? 1 : 0) > anchor + 1) activation = anchor + 1;
  for (std::size_t r = 0; r < region.results.size(); ++r) {
    if (region.results[r].node < region.anchor) joined = r;
    else result = r;
  }
}

}  // namespace cermet::cpu
