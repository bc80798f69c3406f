// Loading a model: on one rank, on threads of this process that share it, or as one of several processes.
#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "comm/local.hpp"
#include "comm/world.hpp"
#include "model/engine_choices.hpp"
#include "model/engine_state.hpp"
#include "model/weight_loader.hpp"

namespace cermet {
namespace {

/// What all ranks must agree on: they would wait for each other, or add what does not belong together.
std::string fingerprint(const Checkpoint& checkpoint, const EngineOptions& options) {
  const ModelConfig& c = checkpoint.config();
  const auto type = [](std::optional<DType> dtype) { return dtype ? name_of(*dtype) : "as stored"; };
  return fmt::format(
      "{}, {} layers, hidden {}, {} heads of {} and {}, inner {} and {}, {} experts, vocabulary {}, {} bytes, dtype {}, weights {}, head {}, cache {}, "
      "context {}, {} sequences, passes of {}, {}",
      c.architecture_name, c.layers, c.hidden_size, c.heads, c.head_dim, c.kv_heads, c.intermediate_size, c.expert_intermediate_size, c.experts, c.vocab_size,
      checkpoint.total_bytes(), type(options.dtype), type(options.weights), type(options.head), type(options.kv_cache), options.max_context,
      options.max_sequences, options.max_batch_tokens, options.device.substr(0, options.device.find(':')));
}

/// "cuda" and "cuda:1" as the rank's own: the one after it, and so on. Other devices are shared.
std::string device_of(const std::string& device, int rank) {
  if (device != "cuda" && !device.starts_with("cuda:")) return device;
  int first = 0;
  if (device != "cuda") std::from_chars(device.data() + 5, device.data() + device.size(), first);
  return fmt::format("cuda:{}", first + rank);
}

/// Options of one of several ranks on a host.
EngineOptions options_of(EngineOptions options, int rank, int ranks_of_host) {
  options.device = device_of(options.device, rank);
  const int threads = options.threads > 0 ? options.threads : ThreadPool(0).size();
  options.threads = std::max(1, threads / ranks_of_host);
  if (rank > 0) options.on_load = {};
  return options;
}

}  // namespace

Engine Engine::load(const std::filesystem::path& folder, const EngineOptions& options, std::optional<Context> context) {
  const comm::WorldPlace place = comm::world_place();
  require(options.tensor_parallel >= 1, "tensor_parallel: expected at least 1 rank, found {}", options.tensor_parallel);
  require(place.size == 1 || place.size == options.tensor_parallel, "tensor_parallel: expected {}, the processes that were started together, found {}",
          place.size, options.tensor_parallel);
  if (options.tensor_parallel == 1) return load_rank(folder, options, std::move(context), nullptr);
  if (options.device.starts_with("cuda"))
    fail(Status::unsupported, "tensor_parallel: expected 1 on GPUs, where models of several ranks were not seen to work yet, found {}",
         options.tensor_parallel);
  require(!context, "tensor_parallel: expected 1 on a device that was made before, found {}", options.tensor_parallel);
  require(options.max_sequences <= Ranks::max_sequences, "max_sequences: expected at most {} where several ranks share a model, found {}", Ranks::max_sequences,
          options.max_sequences);
  if (place.size == 1) return load_rank(folder, options_of(options, 0, options.tensor_parallel), {}, start_threads(folder, options));
  const bool shared_out = env::value(env::Name::CERMET_THREADS) != "0";  // by what started the processes
  return load_rank(folder, options_of(options, place.local_rank, shared_out ? 1 : place.local_size), {}, std::make_shared<Ranks>(comm::join_world()));
}

/// The ranks beside this one as threads.
std::shared_ptr<Ranks> Engine::start_threads(const std::filesystem::path& folder, const EngineOptions& options) {
  {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    check_shard(checkpoint.config(), engine::quantization_for(options, checkpoint), {0, options.tensor_parallel});
  }
  std::vector<std::unique_ptr<Communicator>> group = comm::make_local_group(options.tensor_parallel);
  auto first = std::make_shared<Ranks>(std::move(group.front()));
  group.erase(group.begin());
  first->start(std::move(group), [folder, options](std::unique_ptr<Communicator> communicator) {
    const auto ranks = std::make_shared<Ranks>(std::move(communicator));
    const int rank = ranks->communicator().rank();
    try {
      load_rank(folder, options_of(options, rank, options.tensor_parallel), {}, ranks).serve();
    } catch (const std::exception& error) {
      ranks->communicator().abort(error.what());
      log().debug("rank {}: {}", rank, error.what());  // rank 0 throws it
    }
  });
  return first;
}

Engine Engine::load_rank(const std::filesystem::path& folder, const EngineOptions& options, std::optional<Context> context, std::shared_ptr<Ranks> ranks) {
  try {
    engine::check_counts(options);
    Checkpoint checkpoint = Checkpoint::open(folder);
    if (ranks) ranks->communicator().require_same("model", fingerprint(checkpoint, options));
    const DType stored = storage_type(checkpoint);
    return Engine(std::make_unique<State>(std::move(checkpoint), options, stored, std::move(context), ranks));
  } catch (const std::exception& error) {
    if (ranks) ranks->communicator().abort(error.what());
    throw;
  }
}

}  // namespace cermet
