// Configurations of row kernels: elements of a row for each thread, registers that it may use, and blocks that share a
// long row.
#pragma once

#include <vector>

#include "base/device_limits.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "kernel/space.hpp"

namespace cermet::cuda {

/// Fewer elements for each thread where so many rows would leave SMs without threads.
RowSpec spread_over_device(RowSpec spec, std::int64_t rows);
/// The kernel's own choice, then "elements=32 registers=72 cluster=7" and such where more than its length decides how a
/// row lies.
std::vector<Config> row_configs(const RowSpec& spec);
/// All that they may be.
ConfigSpace row_space(const RowSpec& spec);
/// The spec with the values of a configuration instead of the kernel's own choice.
RowSpec configured(RowSpec spec, const Config& config);
/// Modelled seconds: the bytes at the memory's rate, if as many are in flight on an SM as its latency takes.
double row_cost(const Region& region, const RowSpec& spec, const DeviceLimits& limits);

}  // namespace cermet::cuda
