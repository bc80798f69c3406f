#include "model/parallel/rank_options.hpp"

#include <fmt/format.h>

#include <string>

#include "base/env.hpp"
#include "base/thread_pool.hpp"
#include "comm/device_communicator.hpp"
#include "model/engine_choices.hpp"
#include "model/parallel/ranks.hpp"

namespace cermet {
namespace {

/// A GPU as the rank's own: "cuda:1" is that of rank 0, the next one that of rank 1, and so on. Other devices are
/// shared.
std::string device_of(const std::string& device, int rank) {
  return device == "cuda" || device.starts_with("cuda:") ? comm::device_of_rank(device, rank) : device;
}

bool is_gpu(std::string_view device) { return device.starts_with("cuda") || device.starts_with("null:"); }

/// What options say of engines that share experts.
void check_exchange(const EngineOptions& options) {
  const bool shares = shares_experts(options);
  require(!options.overlap_experts || shares,
          "overlap_experts: expected data_parallel and expert_parallel above 1 with it, found {} and {}",
          options.data_parallel, options.expert_parallel);
  require(!options.expert_exchange || shares,
          "expert_exchange: expected data_parallel and expert_parallel above 1 with it, found {} and {}",
          options.data_parallel, options.expert_parallel);
  if (!shares) return;
  const ExpertExchange exchange = exchange_of(options);
  if (exchange == ExpertExchange::rows && is_gpu(options.device))
    fail(Status::unsupported,
         "expert_exchange: expected gather on GPUs, where counts of rows are not read on the host, found rows");
  if (exchange == ExpertExchange::gather && options.overlap_experts)
    fail(Status::unsupported, "overlap_experts: expected expert_exchange rows with it, found {}", name_of(exchange));
}

/// What the first rank of an engine has of the model.
ModelShard first_shard(const EngineOptions& options) {
  if (shares_experts(options))
    return ModelShard::with_own_tokens(0, options.expert_parallel, exchange_of(options), options.overlap_experts);
  return ModelShard::of(0, options.tensor_parallel, options.expert_parallel);
}

}  // namespace

ExpertExchange exchange_of(const EngineOptions& options) {
  return options.expert_exchange.value_or(is_gpu(options.device) ? ExpertExchange::gather : ExpertExchange::rows);
}

void check_ranks(const EngineOptions& options, int processes) {
  for (const auto& [name, ranks] : {std::pair("tensor_parallel", options.tensor_parallel),
                                    {"expert_parallel", options.expert_parallel},
                                    {"data_parallel", options.data_parallel}})
    require(ranks >= 1 && ranks <= 1024, "{}: expected 1 to 1024 ranks, found {}", name, ranks);
  check_exchange(options);
  const std::string_view name = options.data_parallel > 1     ? "data_parallel"
                                : options.expert_parallel > 1 ? "expert_parallel"
                                                              : "tensor_parallel";
  const int ranks = ranks_of(options), total = ranks * options.data_parallel;
  require(processes == 1 || processes == total, "{}: expected {}, the processes that were started together, found {}",
          name, processes, total);
  if (total == 1) return;
  first_shard(options);
  if (shares_experts(options) && options.data_parallel % options.expert_parallel != 0)
    fail(Status::unsupported, "expert_parallel: expected a divisor of the {} engines of data_parallel, found {}",
         options.data_parallel, options.expert_parallel);
  require(ranks == 1 || options.max_sequences <= Ranks::max_sequences,
          "max_sequences: expected at most {} where several ranks share a model, found {}", Ranks::max_sequences,
          options.max_sequences);
}

void check_model_can_be_shared(const std::filesystem::path& folder, const EngineOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  check_shard(checkpoint.config(), engine::quantization_for(options, checkpoint), first_shard(options));
}

EngineOptions options_of_rank(EngineOptions options, int rank, int ranks) {
  options.device = device_of(options.device, rank);
  const int threads = options.threads > 0 ? options.threads : ThreadPool(0).size();
  options.threads = std::max(1, threads / ranks);
  if (rank > 0) {  // in other threads than rank 0, which reports
    options.on_load = {};
    options.fusion.records = nullptr;
  }
  return options;
}

EngineOptions options_of_process(const EngineOptions& options, const comm::ProcessRank& process) {
  const bool shared_out = env::value(env::Name::CERMET_THREADS) != "0";
  return options_of_rank(options, process.local_rank, shared_out ? 1 : process.local_size);
}

}  // namespace cermet
