#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <numeric>

#include "base/checked.hpp"
#include "base/function_ref.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"
#include "runtime/side_by_side.hpp"

namespace cermet {
std::int64_t dense_bytes(const TensorType& type, const SymbolValues& symbols) {
  std::optional<std::int64_t> bytes = byte_size(type.dtype);
  for (const Dim& d : type.dims) {
    const std::int64_t size = d.value(symbols);
    if (size < 0)
      fail(Status::invalid_argument, "dimension {} of {}: expected a non-negative size, found {}", d.to_string(),
           type.to_string(), size);
    bytes = size == 0 ? 0 : bytes ? checked_mul(*bytes, size) : bytes;
  }
  constexpr std::int64_t largest = std::int64_t{1} << 62;
  if (!bytes || *bytes > largest)
    fail(Status::out_of_memory, "{}: expected less than 2^62 bytes, found more", type.to_string());
  return *bytes;
}

namespace {

std::vector<Lifetime> lifetimes_of(const Graph& graph, std::span<const FusionGroup> groups,
                                   const std::vector<std::int32_t>& root, const SymbolValues& maximum) {
  std::vector<Lifetime> lifetimes(graph.values().size());
  const auto use = [&](ValueId id, std::int32_t step) {
    Lifetime& l = lifetimes[static_cast<std::size_t>(root[static_cast<std::size_t>(id.index)])];
    l.last = std::max(l.last, step);
  };
  const auto last_step = static_cast<std::int32_t>(groups.size());
  for (std::int32_t step = 0; step < last_step; ++step) {
    for (const ValueId id : groups[static_cast<std::size_t>(step)].operands)
      if (id) use(id, step);
    for (const ValueId id :
         groups[static_cast<std::size_t>(step)].results) {  // what stays inside a region needs no memory
      if (root[static_cast<std::size_t>(id.index)] != id.index) use(id, step);
      else lifetimes[static_cast<std::size_t>(id.index)] = {dense_bytes(graph.type(id), maximum), step, step};
    }
  }
  for (const ValueId id : graph.kept_values()) use(id, last_step);
  return lifetimes;
}

/// The operand of a step whose memory a result may take because it is not read afterwards; ValueId{} when there is
/// none.
ValueId dying_operand(const Graph& graph, const Node& node, std::size_t output, std::int32_t step,
                      FunctionRef<std::int32_t(ValueId)> root, const std::vector<Lifetime>& lifetimes,
                      const std::vector<bool>& strided) {
  const std::vector<int>& in_place = definition(node.op).in_place;
  if (output >= in_place.size() || in_place[output] < 0) return {};
  const ValueId operand = node.inputs.at(static_cast<std::size_t>(in_place[output]));
  if (!operand || graph.type(operand) != graph.type(node.outputs[output])) return {};
  if (!strided.empty() && strided[static_cast<std::size_t>(operand.index)])
    return {};  // a dense result would be laid out differently
  const std::int32_t memory = root(operand);
  const auto reads_memory = [&](ValueId id) { return id && root(id) == memory; };
  const bool shared = std::count_if(node.inputs.begin(), node.inputs.end(), reads_memory) > 1;
  const bool written = std::any_of(node.outputs.begin(), node.outputs.end(), reads_memory);
  const bool owned = graph.values()[static_cast<std::size_t>(memory)].kind == ValueKind::intermediate;
  return owned && !shared && !written && lifetimes[static_cast<std::size_t>(memory)].last == step ? operand : ValueId{};
}

/// Lets results take the memory of operands whose lifetime ends there, where the operator can work in place. Memory
/// that is taken is never that of a later result, so that one look at `taken` resolves a root.
void reuse_dying_operands(const Graph& graph, std::span<const FusionGroup> groups, std::vector<std::int32_t>& root,
                          std::vector<Lifetime>& lifetimes, const std::vector<bool>& strided) {
  std::vector<std::int32_t> taken(root.size());  // by root: the one whose memory it takes
  std::iota(taken.begin(), taken.end(), 0);
  const auto root_of = [&](ValueId id) {
    return taken[static_cast<std::size_t>(root[static_cast<std::size_t>(id.index)])];
  };
  for (std::size_t step = 0; step < groups.size(); ++step) {
    if (groups[step].nodes.size() != 1)
      continue;  // inside a group of several, the operator's in-place property does not hold
    const Node& node = graph.nodes()[static_cast<std::size_t>(groups[step].nodes.front())];
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto made = static_cast<std::size_t>(node.outputs[o].index);
      if (root_of(node.outputs[o]) != node.outputs[o].index) continue;
      const ValueId operand =
          dying_operand(graph, node, o, static_cast<std::int32_t>(step), root_of, lifetimes, strided);
      if (!operand) continue;
      taken[made] = root_of(operand);
      lifetimes[static_cast<std::size_t>(taken[made])].last = lifetimes[made].last;
    }
  }
  for (std::int32_t& r : root) r = taken[static_cast<std::size_t>(r)];
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, std::span<const FusionGroup> groups, std::span<const std::int32_t> views,
                       const SymbolValues& maximum, const std::vector<bool>& strided,
                       std::span<const std::int32_t> walk_of, std::span<const GraphUpdate> direct) {
  MemoryPlan plan;
  const std::size_t count = graph.values().size();
  plan.root = memory_roots(graph, [&](std::int32_t n) { return std::binary_search(views.begin(), views.end(), n); });
  for (std::int32_t& root : plan.root)
    if (const auto update = std::ranges::find(direct, ValueId{root}, &GraphUpdate::value); update != direct.end())
      root = update->input.index;
  plan.offset.assign(count, -1);
  std::vector<Lifetime> lifetimes = lifetimes_of(graph, groups, plan.root, maximum);
  for (std::size_t v = 0; v < count; ++v)
    if (graph.values()[v].kind == ValueKind::intermediate && plan.root[v] == static_cast<std::int32_t>(v))
      plan.total = checked_total(plan.total, round_up(lifetimes[v].bytes, 64));
  outlive_branches(groups, walk_of, plan.root, lifetimes);
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
