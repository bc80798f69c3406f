#include "foreign/fallback.hpp"

#include <algorithm>

#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"

namespace cermet::foreign {
namespace {

/// Whether some launch may have operands that the code does not take.
bool is_picky(const ManifestOperand& operand) {
  const bool is_vector = operand.dims.size() <= 1 && (operand.dims.empty() || !operand.dims.front().leading);
  return operand.alignment > 1 || (!operand.any_strides && !is_vector);
}

bool packs(const Kernel& kernel, const Region& region) {
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && region.is_constant(i) && kernel.weight_layout(region, i)) return true;
  return false;
}

}  // namespace

Fallback find_fallback(const Manifest& manifest, const Region& region) {
  if (std::ranges::none_of(manifest.operands, is_picky)) return {};
  const OpKind op = region.problem().op->kind;
  const std::span<const Kernel* const> kernels = region.target() ? cuda::kernels_of(op) : cpu::kernels_of(op);
  const auto found = std::ranges::find_if(
      kernels, [&](const Kernel* kernel) { return !decline_of(*kernel, region) && !packs(*kernel, region); });
  return {found == kernels.end() ? nullptr : *found};
}

}  // namespace cermet::foreign
