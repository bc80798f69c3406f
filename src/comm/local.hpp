// Ranks that are threads of this process.
#pragma once

#include <memory>
#include <vector>

#include "kernel/communicator.hpp"

namespace cermet::comm {

/// One communicator for each of `ranks` threads, engine "local"; element i is rank i's and is used by one thread at a
/// time. They share memory that is freed with the last of them.
std::vector<std::unique_ptr<Communicator>> make_local_group(int ranks);

}  // namespace cermet::comm
