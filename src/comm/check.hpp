// Whether a communicator computes what the stacked operators define.
#pragma once

#include <string>

#include "kernel/communicator.hpp"

namespace cermet::comm {

struct CheckReport {
  int calls = 0;
  std::string wrong;  ///< the first call whose result on this rank is not within the bound of its reference; empty where all are
};

/// Makes every collective's own cases, cut for as many ranks as there are, with strided operands and in place, with operands of several windows, and uneven
/// exchanges; compares each result of this rank with its slice of the stacked reference. Called by every rank, in host memory. A rank that finds a difference
/// goes on with the others to the end.
CheckReport check_communicator(Communicator& communicator);

}  // namespace cermet::comm
