#include "model/parallel/replicas.hpp"

#include <exception>
#include <thread>

#include "base/error.hpp"
#include "comm/local.hpp"
#include "comm/world.hpp"
#include "model/engine_choices.hpp"
#include "model/parallel/rank_options.hpp"

namespace cermet {
namespace {

using Body = std::function<void(Engine&, Communicator&)>;

/// One rank of all engines' ranks; those of an engine are neighbours.
void run_rank(Communicator& world, const std::filesystem::path& folder, const EngineOptions& options,
              const Body& body) {
  try {
    world.require_same("model", engine::fingerprint(Checkpoint::open(folder), options));
    const int ranks = ranks_of(options), engine_index = world.rank() / ranks, place = world.rank() % ranks;
    std::unique_ptr<Communicator> of_engine = ranks > 1 ? world.split(engine_index, place) : nullptr;
    const std::unique_ptr<Communicator> peers = world.split(place, engine_index);
    const int experts = options.expert_parallel;
    const std::shared_ptr<Communicator> beside =
        shares_experts(options) ? world.split(world.rank() / experts, world.rank() % experts) : nullptr;
    try {
      Engine engine = beside ? Engine::load_beside(folder, options, beside)
                             : Engine::load_as_rank(folder, options, std::move(of_engine));
      engine.leads() ? body(engine, *peers) : engine.serve();
    } catch (const std::exception& error) {
      if (beside) beside->abort(error.what());
      peers->abort(error.what());
      throw;
    }
  } catch (const std::exception& error) {
    world.abort(error.what());
    throw;
  }
}

}  // namespace

bool run_replicas(const std::filesystem::path& folder, const EngineOptions& options, const Body& body) {
  const comm::ProcessRank process = comm::process_rank();
  check_ranks(options, process.size);
  check_model_can_be_shared(folder, options);
  const int total = options.data_parallel * ranks_of(options);
  if (process.size > 1) {
    const std::unique_ptr<Communicator> world = comm::join_world();
    run_rank(*world, folder, options_of_process(options, process), body);
    return process.rank == 0;
  }
  std::vector<std::unique_ptr<Communicator>> group = comm::make_local_group(total);
  std::vector<std::jthread> threads;
  for (int r = 1; r < total; ++r)
    threads.emplace_back([&, r] {
      try {
        run_rank(*group[static_cast<std::size_t>(r)], folder, options_of_rank(options, r, total), body);
      } catch (const std::exception&) {  // rank 0 has the error already
      }
    });
  run_rank(*group[0], folder, options_of_rank(options, 0, total), body);
  return true;
}

}  // namespace cermet
