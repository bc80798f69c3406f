#include "fuse/mapping.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace cermet {
namespace {

/// Weakest first: what decides among several operands.
constexpr std::array order{Mapping::one_to_one,  Mapping::reorganize,   Mapping::shuffle,
                           Mapping::one_to_many, Mapping::many_to_many, Mapping::barrier};

Mapping stronger(Mapping a, Mapping b) { return std::ranges::find(order, a) < std::ranges::find(order, b) ? b : a; }

constexpr std::size_t mapping_types = 5;
constexpr std::array<std::array<Combination, mapping_types>, mapping_types> make_table() {
  using enum Verdict;
  using enum Mapping;
  constexpr Combination x{no, many_to_many};
  return {{
      // second:  one_to_one            one_to_many             many_to_many          reorganize               shuffle
      /* 1-1 */ {{{fuse, one_to_one}, {fuse, one_to_many}, {fuse, many_to_many}, {fuse, reorganize}, {fuse, shuffle}}},
      /* 1-M */ {{{fuse, one_to_many}, {profile, one_to_many}, x, {profile, one_to_many}, {profile, one_to_many}}},
      /* M-M */ {{{fuse, many_to_many}, {profile, many_to_many}, x, {profile, many_to_many}, {profile, many_to_many}}},
      /* Reo */
      {{{fuse, reorganize}, {profile, one_to_many}, {profile, many_to_many}, {fuse, reorganize}, {fuse, reorganize}}},
      /* Shu */
      {{{fuse, shuffle}, {profile, one_to_many}, {profile, many_to_many}, {fuse, reorganize}, {fuse, shuffle}}},
  }};
}
constexpr auto table = make_table();
static_assert(static_cast<std::size_t>(Mapping::shuffle) + 1 == mapping_types,
              "rows and columns are in the order of the enumeration");

/// By node: how the strongest path from an operand of the region to the node's results reads its elements; stops at the
/// first edge that is forbidden.
std::optional<ForbiddenEdge> walk(const Region& region, std::vector<Mapping>& types_so_far) {
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const RegionNode& node = region.nodes[n];
    Mapping all = Mapping::one_to_one;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<Mapping> own = mapping_of(node.problem, i);
      if (!own) continue;
      if (!node.inputs[i].is_inside()) {
        all = stronger(all, *own);
        continue;
      }
      const auto producer = static_cast<std::size_t>(node.inputs[i].index);
      const Combination both = combine(types_so_far[producer], *own);
      if (both.verdict == Verdict::no) return ForbiddenEdge{producer, n, types_so_far[producer], *own};
      all = stronger(all, both.result);
    }
    types_so_far.push_back(all);
  }
  return {};
}

}  // namespace

Combination combine(Mapping first, Mapping second) {
  if (first == Mapping::barrier || second == Mapping::barrier) return {Verdict::no, Mapping::barrier};
  return table[static_cast<std::size_t>(first)][static_cast<std::size_t>(second)];
}

Mapping mapping_of(const Problem& problem) {
  Mapping all = Mapping::one_to_one;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i)
    if (const std::optional<Mapping> own = mapping_of(problem, i)) all = stronger(all, *own);
  return all;
}

std::optional<ForbiddenEdge> forbidden_edge(const Region& region) {
  std::vector<Mapping> ignored;
  return walk(region, ignored);
}

Mapping mapping_of(const Region& region) {
  Mapping all = Mapping::one_to_one;
  for (const RegionNode& node : region.nodes) all = stronger(all, mapping_of(node.problem));
  return all;
}

bool is_one_to_one(OpKind op) {
  const OpDefinition& schema = definition(op);
  return schema.outputs.size() == 1 && std::ranges::all_of(schema.inputs, [](const OperandSpec& operand) {
           return operand.mapping == Mapping::one_to_one;
         });
}

}  // namespace cermet
