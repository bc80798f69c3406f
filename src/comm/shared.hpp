// Ranks that are processes of one host.
#pragma once

#include <memory>
#include <string>

#include "kernel/communicator.hpp"

namespace cermet::comm {

/// Rank `rank` of `ranks` processes that give the same `job`, a name of letters, digits, dots and hyphens: engine
/// "shared". Rank 0 makes memory of that name, which is gone from the file system once all have it. Throws Error(io)
/// with the ranks that did not come in time.
std::unique_ptr<Communicator> join_shared_group(const std::string& job, int rank, int ranks);

}  // namespace cermet::comm
