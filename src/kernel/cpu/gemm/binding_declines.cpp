// Which regions CPU products do not take.
#include <algorithm>

#include "kernel/cpu/gemm/binding.hpp"
#include "op/grouped_work.hpp"

namespace cermet::cpu {

Decline ProductBinding::declines(const Region& region) {
  return region.anchor == 0 ? declines_after(region)
                            : fmt::format("{} comes before the product", region.nodes[0].problem.op->name);
}

Decline ProductBinding::declines_after(const Region& region) {
  if (NormAfter::ends(region)) return fmt::format("{} comes after the product", region.nodes.back().problem.op->name);
  return region.is_single() ? std::nullopt : declines_store(region);
}

Decline ProductBinding::declines_around(const Region& region) {
  if (region.is_single()) return std::nullopt;
  if (NormAfter::ends(region)) {
    const Decline reason = NormAfter::declines(region);
    return reason ? reason : declines_around(NormAfter::without(region));
  }
  if (Decline reason = Prologue::declines(region)) return reason;
  return declines_store(region);
}

Decline ProductBinding::declines_store(const Region& region) {
  const TileProgramOrReason made = product_epilogue(region, product_loops(region));
  if (made.reason) return made.reason;
  const auto before =
      std::ranges::count_if(region.results, [&](const RegionPlace& place) { return place.node < region.anchor; });
  if (region.problem().op->kind == OpKind::grouped_linear && has_unweighted_group(region.problem()) && before > 0)
    return "rows of the last group, which has no weight, are not made before the product";
  if (made.program.results.empty() ||
      made.program.results.size() + static_cast<std::size_t>(before) != region.results.size())
    return "a result does not come from the product";
  return BoundTileProgram::declines(made.program);
}

}  // namespace cermet::cpu
