#include "select/select.hpp"

#include <algorithm>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"

namespace cermet {

namespace {

std::span<const Kernel* const> kernels_for(OpKind anchor, const Target* target) { return target ? cuda::kernels_of(anchor) : cpu::kernels_of(anchor); }

}  // namespace

Selection explain_selection(const Region& region) {
  if (!region.target()) cpu::active_isa();
  if (!region.is_single()) verify(region);
  Selection selection;
  for (const Kernel* kernel : kernels_for(region.problem().op->kind, region.target())) {
    Decline decline = decline_of(*kernel, region);
    if (!decline && !selection.kernel) selection.kernel = kernel;
    selection.candidates.push_back({kernel, std::move(decline)});
  }
  return selection;
}

const Kernel& select_kernel(const Region& region) {
  const Selection selection = explain_selection(region);
  if (selection.kernel) return *selection.kernel;
  std::string reasons;
  for (const Candidate& candidate : selection.candidates) reasons += fmt::format("; {}: {}", candidate.kernel->name, *candidate.decline);
  fail(Status::unsupported, "{}: expected a {} kernel that takes it, found none{}", region.to_string(), region.target() ? "CUDA" : "CPU", reasons);
}

bool fuses(OpKind anchor, const Target* target) {
  return std::ranges::any_of(kernels_for(anchor, target), [](const Kernel* kernel) { return kernel->fuses; });
}

}  // namespace cermet
