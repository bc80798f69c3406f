// Prompts that several engines share out: each generates for every N-th, the first hears of all.
#pragma once

#include <atomic>
#include <span>

#include "kernel/communicator.hpp"
#include "model/generate_batch.hpp"

namespace cermet {

/// Generates for `requests`, the same on every peer, with this peer's engine for those whose number leaves its rank
/// when divided by the number of peers. `events` are called on rank 0 alone, with numbers of `requests`: at once for
/// its own, every tenth of a second for those of others, whose results have no times. A peer whose `cancelled` is set
/// ends all, with End::cancelled for what is not done. Throws Error where a request does not fit the engine or a peer
/// fails.
void generate_spread(Engine& engine, Communicator& peers, std::span<const BatchRequest> requests,
                     const BatchGenerator::Events& events, const std::atomic<bool>& cancelled);

}  // namespace cermet
