// How kernels that look for something in long rows spread a row over threads, and what that is taken to cost.
#pragma once

#include <vector>

#include "base/device_limits.hpp"
#include "base/target.hpp"
#include "kernel/config.hpp"

namespace cermet::cuda {

/// Threads of a block and blocks of a cluster, each a field of the configuration; a cluster of one is a block of its
/// own.
struct RowShares {
  int threads = 256, cluster = 1;
};

/// `own`, or what the configuration says.
RowShares row_shares(const Config& config, RowShares own);
/// The kernel's own choice and all others; clusters only where the device has them and `clusters` says that the kernel
/// does.
std::vector<Config> row_configs(const Target& target, bool clusters);
/// Seconds in which rows of so many bytes are read `passes` times. Assumed, not measured: 20 bytes a cycle for each SM,
/// and 1500 cycles for a cluster to agree.
double row_seconds(const Target& target, const DeviceLimits& limits, RowShares shares, double rows, double row_bytes,
                   double passes);

}  // namespace cermet::cuda
