// Loading a model: on one rank, on threads of this process that share it, or as one of several processes.
#include "base/log.hpp"
#include "comm/local.hpp"
#include "comm/world.hpp"
#include "model/engine_choices.hpp"
#include "model/engine_state.hpp"
#include "model/parallel/rank_options.hpp"
#include "model/weight_loader.hpp"

namespace cermet {

Engine Engine::load(const std::filesystem::path& folder, const EngineOptions& options, std::optional<Context> context) {
  const comm::ProcessRank process = comm::process_rank();
  check_ranks(options, process.size);
  require(options.data_parallel == 1, "data_parallel: expected 1 where one engine is asked for, found {}",
          options.data_parallel);
  const int ranks = ranks_of(options);
  if (ranks == 1) return load_rank(folder, options, std::move(context), nullptr);
  require(!context, "tensor_parallel and expert_parallel: expected 1 on a device that was made before, found {}",
          ranks);
  if (process.size == 1)
    return load_rank(folder, options_of_rank(options, 0, ranks), {}, start_threads(folder, options));
  return load_as_rank(folder, options_of_process(options, process), comm::join_world());
}

Engine Engine::load_as_rank(const std::filesystem::path& folder, const EngineOptions& options,
                            std::unique_ptr<Communicator> group) {
  if (!group) return load_rank(folder, options, {}, nullptr);
  return load_rank(folder, options, {},
                   std::make_shared<Ranks>(std::move(group), options.tensor_parallel, options.expert_parallel));
}

Engine Engine::load_beside(const std::filesystem::path& folder, const EngineOptions& options,
                           std::shared_ptr<Communicator> group) {
  return load_rank(folder, options, {}, nullptr, std::move(group));
}

/// The ranks beside this one as threads.
std::shared_ptr<Ranks> Engine::start_threads(const std::filesystem::path& folder, const EngineOptions& options) {
  check_model_can_be_shared(folder, options);
  const int tensor = options.tensor_parallel, experts = options.expert_parallel, count = ranks_of(options);
  std::vector<std::unique_ptr<Communicator>> group = comm::make_local_group(count);
  auto first = std::make_shared<Ranks>(std::move(group.front()), tensor, experts);
  group.erase(group.begin());
  first->start(std::move(group), [folder, options, tensor, experts, count](std::unique_ptr<Communicator> communicator) {
    const auto ranks = std::make_shared<Ranks>(std::move(communicator), tensor, experts);
    const int rank = ranks->communicator().rank();
    try {
      load_rank(folder, options_of_rank(options, rank, count), {}, ranks).serve();
    } catch (const std::exception& error) {
      ranks->communicator().abort(error.what());
      log().debug("rank {}: {}", rank, error.what());  // rank 0 throws it
    }
  });
  return first;
}

Engine Engine::load_rank(const std::filesystem::path& folder, const EngineOptions& options,
                         std::optional<Context> context, const std::shared_ptr<Ranks>& ranks,
                         const std::shared_ptr<Communicator>& beside) {
  try {
    engine::check_counts(options);
    Checkpoint checkpoint = Checkpoint::open(folder);
    if (ranks) ranks->communicator().require_same("model", engine::fingerprint(checkpoint, options));
    const DType stored = storage_type(checkpoint);
    return Engine(std::make_unique<State>(std::move(checkpoint), options, stored, std::move(context), ranks, beside));
  } catch (const std::exception& error) {
    if (ranks) ranks->communicator().abort(error.what());
    if (beside) beside->abort(error.what());
    throw;
  }
}

}  // namespace cermet
