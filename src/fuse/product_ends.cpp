#include "fuse/product_ends.hpp"

#include <algorithm>
#include <array>

namespace cermet {
namespace {

/// Values of a product and what follows it that go to memory: one that others read, too, beside the last.
constexpr std::int64_t most_stored = 2;

/// A gated activation, the sum of a token's experts, the pool after a convolution, what rotates and stores the heads
/// of queries, keys and values, and the norm after a residual.
constexpr std::array ends{ProductEnd{OpKind::silu_and_mul},         ProductEnd{OpKind::gelu_and_mul},
                          ProductEnd{OpKind::moe_unpermute},        ProductEnd{OpKind::max_pool},
                          ProductEnd{OpKind::rope_and_cache, true}, ProductEnd{OpKind::layer_norm}};

}  // namespace

const ProductEnd* end_of(OpKind op) {
  const auto found = std::ranges::find(ends, op, &ProductEnd::op);
  return found == ends.end() ? nullptr : &*found;
}

bool leads_to_end(const Graph& graph, std::int32_t n, const std::vector<bool>& is_result) {
  const Node& node = graph.nodes()[static_cast<std::size_t>(n)];
  if (node.op != OpKind::split && node.op != OpKind::reshape) return false;
  const auto leads = [&](const Use& use) {
    const ProductEnd* const end = end_of(graph.nodes()[static_cast<std::size_t>(use.node)].op);
    return end != nullptr ? end->reads_parts : leads_to_end(graph, use.node, is_result);
  };
  return std::ranges::all_of(node.outputs, [&](ValueId id) {
    return !is_result[static_cast<std::size_t>(id.index)] && !graph.uses(id).empty() &&
           std::ranges::all_of(graph.uses(id), leads);
  });
}

bool is_ended(const Region& region) {
  const ProductEnd* const end = end_of(region.nodes.back().problem.op->kind);
  std::int64_t after = 0, of_last = 0;
  for (const RegionPlace& result : region.results) {
    after += result.node >= region.anchor;
    of_last += static_cast<std::size_t>(result.node) + 1 == region.nodes.size();
  }
  return after <= most_stored || (end != nullptr && end->reads_parts && after == of_last);
}

}  // namespace cermet
