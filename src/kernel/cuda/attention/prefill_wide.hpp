// Attention of many queries with wide heads on Hopper, for the kernels that are made of it.
#pragma once

#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

Decline wide_prefill_declines(const Problem& problem);
/// The programs, for values in memory of their own and in the keys', and the general task's for operands that copies do
/// not suit.
std::vector<Program> wide_prefill_programs(const Problem& problem, const Config& config);
/// Launches one of those, which are numbers `first` on of the kernel's.
QueriesLauncher bind_wide_prefill(const Problem& problem, std::size_t first);
/// Modelled seconds of a launch.
double wide_prefill_seconds(const Problem& problem, const Config& config, const DeviceLimits& limits);

}  // namespace cermet::cuda
