// Ranks that are processes of one or several hosts, joined by MPI.
#pragma once

#include <memory>

#include "comm/mpi_plugin.hpp"

namespace cermet::comm {

/// Engine "mpi". MPI moves data only: sums are made here, in the order of ranks, so that all engines give the same
/// bits.
std::unique_ptr<Communicator> make_mpi_communicator(std::unique_ptr<MpiTransport> transport);

}  // namespace cermet::comm
