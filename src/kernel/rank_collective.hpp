// Collectives whose ranks are processes or threads: a call of the node's communicator, on every backend.
#pragma once

#include "kernel/kernel.hpp"
#include "op/collective.hpp"

namespace cermet {

/// The kernel "ranks.NAME": takes one rank's own operand where `ranks` is more than one. The host calls it, also on a
/// device.
Kernel rank_collective(Collective kind, OpKind op);
/// Why a kernel that knows no communicator does not take a collective: there is more than one rank.
Decline one_process_declines(const Problem& problem);
/// Makes a launcher of stacked operands one that takes a rank's own, of a group of one.
Launcher stacked_launcher(Launcher stacked);

}  // namespace cermet
