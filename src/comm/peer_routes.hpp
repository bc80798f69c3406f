// Which way a call takes between GPUs: by modelled time.
#pragma once

#include "comm/call.hpp"

namespace cermet::comm {

/// A call takes `seconds` and what its bytes take at `bytes_per_second`.
struct RouteModel {
  double seconds = 0, bytes_per_second = 0;
  double time(double bytes) const { return seconds + bytes / bytes_per_second; }
};

/// Whether all_reduce is sooner done as two exchanges of shares than as one of all.
bool takes_two_shots(const DenseCall& call);
/// Whether a call is sooner done through peer memory than by NCCL, where both are there.
bool takes_peer_memory(const DenseCall& call);

}  // namespace cermet::comm
