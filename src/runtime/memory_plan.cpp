#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/checked.hpp"
#include "graph/memory.hpp"

namespace cermet {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

std::int64_t sum(std::int64_t a, std::int64_t b) {
  const auto r = checked_add(a, b);
  if (!r) fail(Status::out_of_memory, "memory plan: expected values of less than 2^63 bytes together, found more");
  return *r;
}

/// Lowest offset of the smallest gap between `taken` (sorted by offset) that holds `bytes`; the end when none does.
std::int64_t best_gap(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken, std::int64_t bytes) {
  std::int64_t end = 0, best = -1, best_size = std::numeric_limits<std::int64_t>::max();
  for (const auto& [offset, size] : taken) {
    const std::int64_t gap = offset - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, offset + size);
  }
  return best >= 0 ? best : end;
}

std::int64_t most_alive(std::span<const Lifetime> lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::int32_t, std::int64_t>> events;  // a block ends before another begins at the next step
  for (const Lifetime& l : lifetimes) {
    events.emplace_back(l.first, round_up(l.bytes, alignment));
    events.emplace_back(l.last + 1, -round_up(l.bytes, alignment));
  }
  std::sort(events.begin(), events.end());
  std::int64_t alive = 0, most = 0;
  for (const auto& [step, bytes] : events) most = std::max(most, alive = sum(alive, bytes));
  return most;
}

}  // namespace

Placement place(std::span<const Lifetime> lifetimes, std::int64_t alignment) {
  Placement placement;
  placement.offsets.assign(lifetimes.size(), 0);
  placement.lower_bound = most_alive(lifetimes, alignment);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<std::size_t> placed;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t i : order) {
    const std::int64_t bytes = round_up(lifetimes[i].bytes, alignment);
    if (bytes == 0) continue;
    taken.clear();
    for (const std::size_t other : placed)
      if (overlap(lifetimes[i], lifetimes[other])) taken.emplace_back(placement.offsets[other], round_up(lifetimes[other].bytes, alignment));
    std::sort(taken.begin(), taken.end());
    placement.offsets[i] = best_gap(taken, bytes);
    placement.bytes = std::max(placement.bytes, sum(placement.offsets[i], bytes));
    placed.push_back(i);
  }
  return placement;
}

std::int64_t dense_bytes(const TensorType& type, const SymbolValues& symbols) {
  std::optional<std::int64_t> bytes = static_cast<std::int64_t>(size_of(type.dtype));
  for (const Dim& d : type.dims) {
    const std::int64_t size = d.value(symbols);
    if (size < 0) fail(Status::invalid_argument, "dimension {} of {}: expected a non-negative size, found {}", d.to_string(), type.to_string(), size);
    bytes = size == 0 ? 0 : bytes ? checked_mul(*bytes, size) : bytes;
  }
  constexpr std::int64_t largest = std::int64_t{1} << 62;
  if (!bytes || *bytes > largest) fail(Status::out_of_memory, "{}: expected less than 2^62 bytes, found more", type.to_string());
  return *bytes;
}

namespace {

std::vector<Lifetime> lifetimes_of(const Graph& graph, std::span<const FusionGroup> groups, const std::vector<std::int32_t>& root,
                                   const SymbolValues& maximum) {
  std::vector<Lifetime> lifetimes(graph.values().size());
  const auto use = [&](ValueId id, std::int32_t step) {
    Lifetime& l = lifetimes[static_cast<std::size_t>(root[static_cast<std::size_t>(id.index)])];
    l.last = std::max(l.last, step);
  };
  const auto last_step = static_cast<std::int32_t>(groups.size());
  for (std::int32_t step = 0; step < last_step; ++step) {
    for (const std::int32_t n : groups[static_cast<std::size_t>(step)].nodes) {
      const Node& node = graph.nodes()[static_cast<std::size_t>(n)];
      for (const ValueId id : node.inputs)
        if (id) use(id, step);
      for (const ValueId id : node.outputs) {
        if (root[static_cast<std::size_t>(id.index)] != id.index) use(id, step);
        else lifetimes[static_cast<std::size_t>(id.index)] = {dense_bytes(graph.type(id), maximum), step, step};
      }
    }
  }
  for (const GraphOutput& output : graph.outputs()) use(output.value, last_step);
  return lifetimes;
}

/// The operand of a step whose memory a result may take because it is not read afterwards; ValueId{} when there is none.
ValueId dying_operand(const Graph& graph, const Node& node, std::size_t output, std::int32_t step, const std::vector<std::int32_t>& root,
                      const std::vector<Lifetime>& lifetimes, const std::vector<bool>& strided) {
  const std::vector<int>& in_place = definition(node.op).in_place;
  if (output >= in_place.size() || in_place[output] < 0) return {};
  const ValueId operand = node.inputs.at(static_cast<std::size_t>(in_place[output]));
  if (!operand || graph.type(operand) != graph.type(node.outputs[output])) return {};
  if (!strided.empty() && strided[static_cast<std::size_t>(operand.index)]) return {};  // a dense result would be laid out differently
  const std::int32_t memory = root[static_cast<std::size_t>(operand.index)];
  const auto reads_memory = [&](ValueId id) { return id && root[static_cast<std::size_t>(id.index)] == memory; };
  const bool shared = std::count_if(node.inputs.begin(), node.inputs.end(), reads_memory) > 1;
  const bool written = std::any_of(node.outputs.begin(), node.outputs.end(), reads_memory);
  const bool owned = graph.values()[static_cast<std::size_t>(memory)].kind == ValueKind::intermediate;
  return owned && !shared && !written && lifetimes[static_cast<std::size_t>(memory)].last == step ? operand : ValueId{};
}

/// Lets results take the memory of operands whose lifetime ends there, where the operator can work in place.
void reuse_dying_operands(const Graph& graph, std::span<const FusionGroup> groups, std::vector<std::int32_t>& root, std::vector<Lifetime>& lifetimes,
                          const std::vector<bool>& strided) {
  for (std::size_t step = 0; step < groups.size(); ++step) {
    if (groups[step].nodes.size() != 1) continue;  // inside a group of several, the operator's in-place property does not hold
    const Node& node = graph.nodes()[static_cast<std::size_t>(groups[step].nodes.front())];
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto made = node.outputs[o].index;
      if (root[static_cast<std::size_t>(made)] != made) continue;
      const ValueId operand = dying_operand(graph, node, o, static_cast<std::int32_t>(step), root, lifetimes, strided);
      if (!operand) continue;
      const std::int32_t memory = root[static_cast<std::size_t>(operand.index)];
      lifetimes[static_cast<std::size_t>(memory)].last = lifetimes[static_cast<std::size_t>(made)].last;
      std::replace(root.begin(), root.end(), made, memory);
    }
  }
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, std::span<const FusionGroup> groups, std::span<const std::int32_t> views, const SymbolValues& maximum,
                       const std::vector<bool>& strided) {
  MemoryPlan plan;
  const std::size_t count = graph.values().size();
  plan.root = memory_roots(graph, [&](std::int32_t n) { return std::binary_search(views.begin(), views.end(), n); });
  plan.offset.assign(count, -1);
  std::vector<Lifetime> lifetimes = lifetimes_of(graph, groups, plan.root, maximum);
  for (std::size_t v = 0; v < count; ++v)
    if (graph.values()[v].kind == ValueKind::intermediate && plan.root[v] == static_cast<std::int32_t>(v))
      plan.total = sum(plan.total, round_up(lifetimes[v].bytes, 64));
  reuse_dying_operands(graph, groups, plan.root, lifetimes, strided);
  std::vector<Lifetime> blocks;
  std::vector<std::size_t> owners;
  for (std::size_t v = 0; v < count; ++v) {
    if (graph.values()[v].kind != ValueKind::intermediate || plan.root[v] != static_cast<std::int32_t>(v)) continue;
    blocks.push_back(lifetimes[v]);
    owners.push_back(v);
  }
  const Placement placement = place(blocks);
  plan.bytes = placement.bytes;
  plan.lower_bound = placement.lower_bound;
  for (std::size_t b = 0; b < blocks.size(); ++b) plan.offset[owners[b]] = placement.offsets[b];
  for (std::size_t v = 0; v < count; ++v) plan.offset[v] = plan.offset[static_cast<std::size_t>(plan.root[v])];
  return plan;
}

}  // namespace cermet
