// The kernels from outside that this process knows: those of the folders when it first asks, and again after reload().
#pragma once

#include <span>
#include <vector>

#include "foreign/store.hpp"
#include "kernel/kernel.hpp"

namespace cermet::foreign {

/// Kernels of an operator in the order in which they are tried: our own, then those from outside. What this gives stays
/// valid for the life of the process.
std::span<const Kernel* const> candidates(OpKind anchor, bool on_gpu);
/// All from outside, for both.
std::span<const Kernel* const> foreign_kernels();
/// Reads the folders again: after something was added, removed or checked.
void reload();

/// Why a stored kernel may not be chosen on a device: it was not checked there, or failed; nothing where it passed.
Decline check_decline(const StoredKernel& kernel, const Target* target);

}  // namespace cermet::foreign
