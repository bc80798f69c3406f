// Attention of many queries with bulk tensor copies, for the kernels that are made of it.
#pragma once

#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/device/attention/prefill_tma.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

Decline tma_prefill_declines(const Problem& problem);
/// The program, and the general task's for operands that copies do not suit.
std::vector<Program> tma_prefill_programs(const Problem& problem, const Config& config);
/// Launches one of those, which are numbers `first` on of the kernel's.
QueriesLauncher bind_tma_prefill(const Problem& problem, const Config& config, std::size_t first);
/// Modelled seconds of a launch.
double tma_prefill_seconds(const Problem& problem, const Config& config, const DeviceLimits& limits);

/// What a problem says of the configuration.
attention::TmaPrefillConfig tma_prefill_config(const AttentionProblem& problem);
/// The program of a configuration, and the general task's for operands that copies do not suit.
std::vector<Program> tma_prefill_programs(const Problem& problem, const attention::TmaPrefillConfig& config,
                                          bool may_spill);

}  // namespace cermet::cuda
