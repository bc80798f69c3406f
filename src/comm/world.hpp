// All ranks that this process was started with: by mpirun, by `cermet launch`, or by whatever sets the variables of
// torchrun.
#pragma once

#include <memory>
#include <string>

#include "kernel/communicator.hpp"

namespace cermet::comm {

/// What the environment says of this process. Costs nothing; joins nothing.
struct ProcessRank {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among the processes of this host
  std::string engine;  ///< what join_world() would take: "mpi", "shared", or "" where the process was started alone
};
/// Throws Error naming a variable that is set to something else than expected.
ProcessRank process_rank();

/// The communicator of all ranks, in host memory. Every process of the world calls it, once. Throws Error(unsupported)
/// where ranks are on several hosts and no MPI is there, and Error(io) where ranks do not come within the timeout, with
/// their numbers.
std::unique_ptr<Communicator> join_world();

}  // namespace cermet::comm
