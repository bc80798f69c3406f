// By how much a modelled time must be less to decide: kernels say how far off their models are.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet {

/// The share of a modelled time by which a configuration's must be less than another's of the same kernel to count as
/// faster.
double config_margin(const Kernel& kernel, const Region& region);

/// Whether later kernels are compared with what its own choice takes, also where another configuration was taken:
/// records of those are of their own choices.
bool is_compared_by_own_choice(const Kernel& kernel, const Target* target);

/// The share by which a kernel's must be less than that of the one chosen before it. Small where the models of both
/// were compared with recorded times; 1, so that it is never taken, where only the model of the one before was, and for
/// attention, whose contexts are not known beforehand.
double kernel_margin(const Kernel& kernel, const Kernel& before, const Target* target);

}  // namespace cermet
