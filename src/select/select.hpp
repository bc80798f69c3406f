// WHICH: the choice among an operator's kernels: ordered candidates, the first that does not decline.
#pragma once

#include <vector>

#include "kernel/kernel.hpp"

namespace cermet {

struct Candidate {
  const Kernel* kernel;
  Decline decline;  ///< why it declined; nothing for the chosen one and those after it that would also fit
};

struct Selection {
  const Kernel* kernel = nullptr;  ///< null when every candidate declines
  std::vector<Candidate> candidates;
};

/// Asks every kernel of the anchor's operator for the region's target (the CPU where it has none), in order. Kernels named in CERMET_DISABLE_KERNELS decline.
Selection explain_selection(const Region& region);
/// The chosen kernel; throws Error(unsupported) with every reason when none fits.
const Kernel& select_kernel(const Region& region);
/// Whether some kernel takes regions of several nodes whose anchor is this operator.
bool fuses(OpKind anchor, const Target* target);

}  // namespace cermet
