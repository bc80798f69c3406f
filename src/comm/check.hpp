// Whether a communicator computes what the stacked operators define.
#pragma once

#include <string>

#include "device/device.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

struct CheckReport {
  int calls = 0;
  std::string wrong;  ///< the first call whose result on this rank is not within the bound of its reference; empty
                      ///< where all are
};

/// Makes every collective's own cases, cut for as many ranks as there are, with strided operands and in place, with
/// operands of several windows, and uneven exchanges; compares each result of this rank with its slice of the stacked
/// reference. Called by every rank. A rank that finds a difference goes on with the others to the end. For a
/// communicator on a device, `stream` is one of `device`: operands are dense then, a second time of a captured graph,
/// and what such communicators refuse is left out.
CheckReport check_communicator(Communicator& communicator, Device* device = nullptr, Stream* stream = nullptr);

}  // namespace cermet::comm
