// What of EngineOptions concerns ranks: how many there are, whether that can be, and what each gets of the host.
#pragma once

#include <algorithm>
#include <filesystem>

#include "comm/world.hpp"
#include "model/engine.hpp"

namespace cermet {

/// Whether engines have sequences of their own and share the experts: each is one rank of data_parallel, and neighbours
/// have different experts.
inline bool shares_experts(const EngineOptions& options) {
  return options.data_parallel > 1 && options.expert_parallel > 1 && options.tensor_parallel == 1;
}
/// How they get each other's tokens: on GPUs the way that reads nothing on the host, so that passes can be captured in
/// graphs.
ExpertExchange exchange_of(const EngineOptions& options);
/// Ranks of one engine.
inline int ranks_of(const EngineOptions& options) {
  return shares_experts(options) ? 1 : std::max(options.tensor_parallel, options.expert_parallel);
}

/// Throws Error naming the option where so many ranks cannot be; `processes`: those that were started together.
void check_ranks(const EngineOptions& options, int processes);
/// Throws Error naming what of the model cannot be shared out so.
void check_model_can_be_shared(const std::filesystem::path& folder, const EngineOptions& options);

/// Options of one of several ranks that are threads of this process: a share of its threads, a GPU of its own; rank 0
/// alone reports what was loaded and compiled.
EngineOptions options_of_rank(EngineOptions options, int rank, int ranks);
/// The same of a process that was started with others, by what may have shared the cores out.
EngineOptions options_of_process(const EngineOptions& options, const comm::ProcessRank& process);

}  // namespace cermet
