// Data parallelism: several engines of one model, each alone or on ranks of its own, that take sequences of their own.
#pragma once

#include <filesystem>
#include <functional>

#include "kernel/communicator.hpp"
#include "model/engine.hpp"

namespace cermet {

/// Loads options.data_parallel engines and calls `body` with each: in threads of this process; of a process that was
/// started with others (comm/world.hpp), in the first process of each engine's ranks, while the others compute along.
/// `peers` joins the engines, in their order, by calls on the host. Returns when this process's calls have, whether it
/// is the first process; throws Error where any rank has failed, which ends all of them. Throws Error naming the option
/// where ranks do not fit, and Error on every rank, before weights are read, where they are given different models or
/// options.
bool run_replicas(const std::filesystem::path& folder, const EngineOptions& options,
                  const std::function<void(Engine& engine, Communicator& peers)>& body);

}  // namespace cermet
