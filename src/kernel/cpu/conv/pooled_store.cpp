#include "kernel/cpu/conv/pooled_store.hpp"

#include <cmath>

#include "kernel/cpu/conv/winograd.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "op/pool_window.hpp"

namespace cermet::cpu {

bool ends_with_pool(const Region& region) {
  return region.nodes.back().problem.op->kind == OpKind::max_pool && region.anchor + 1 < std::ssize(region.nodes);
}

Region without_pool(const Region& region) {
  Region conv = region;
  const RegionInput read = conv.nodes.back().inputs[0];
  conv.nodes.pop_back();
  conv.results = {{read.index, read.output}};
  return conv;
}

Decline declines_pool(const Region& region) {
  const Problem& p = region.nodes.back().problem;
  const PoolWindow window = pool_window(p.attributes, p.input(0).rank());
  const Spatial pair{1, 2, 2}, none{0, 0, 0};
  if (!window.channels_last || window.kernel != pair || window.stride != pair || window.before != none ||
      window.after != none || window.dilation != Spatial{1, 1, 1})
    return "max_pool after conv: its windows are not 2 x 2 pixels side by side";
  if (p.attributes.flag("ceil_mode") || p.attributes.flag("with_indices"))
    return "max_pool after conv: it rounds sizes up or gives indices";
  if (!region.nodes.back().inputs[0].is_inside() || region.results.size() != 1 ||
      region.results[0].node + 1 != std::ssize(region.nodes))
    return "max_pool after conv: its operand is read elsewhere, too";
  const Region conv = without_pool(region);
  if (Decline reason = ConvStore::declines_after(conv)) return reason;
  const ConvStore store(conv);
  if (!store.sum || store.sum->residual)
    return "max_pool after conv: more than a bias, bounds or a function comes between";
  return std::nullopt;
}

void pool_results(const float* results, std::int64_t width, float* to) {
  const float* const below = results + winograd_places * panel_columns;
  const auto larger = [](float most, float value) {
    return value > most || std::isnan(value) ? (std::isnan(most) ? most : value) : most;
  };
  for (std::int64_t c = 0; c < width; ++c)
    to[c] = larger(larger(results[c], results[panel_columns + c]), larger(below[c], below[panel_columns + c]));
}

}  // namespace cermet::cpu
