// Ranks that compute one model: the caller drives rank 0, which broadcasts every command.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kernel/communicator.hpp"
#include "model/engine.hpp"
#include "model/parallel/shard.hpp"

namespace cermet {

/// What rank 0's engine does and the others do with it. Ids are no part of it: the graph sends them.
struct RankCommand {
  enum class Kind : std::uint8_t { end, forward, forward_chosen, drop, reset, timing } kind = Kind::end;
  std::int64_t
      sequence = 0,
      tokens = 0;  ///< of those that concern one sequence; tokens: of timing whether it is on, of forward which logits
  std::span<const SequenceTokens> batch = {};  ///< of forward: how many tokens of which sequences
};

/// A rank's side of a model that several ranks compute.
class Ranks {
 public:
  /// Most sequences of a batch, so that a command fits one message.
  static constexpr std::int64_t max_sequences = 250;

  /// `experts`: of the ranks that are the communicator's, how many have different experts; all share the matrices
  /// unless `tensor` is 1.
  Ranks(std::unique_ptr<Communicator> communicator, int tensor, int experts)
      : communicator_(std::move(communicator)), shard_(ModelShard::of(communicator_->rank(), tensor, experts)) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  /// Ends, and joins ranks that are threads of this process.
  ~Ranks();

  ModelShard shard() const { return shard_; }
  Communicator& communicator() { return *communicator_; }
  bool leads() const { return communicator_->rank() == 0; }
  /// Has the other ranks do what this one is about to do. Does nothing on them. Throws Error where one has failed.
  void tell(const RankCommand& command);
  /// Rank 0 lets the others end. It does so before it gives back what all give back together: groups of GPUs wait for
  /// each other then.
  void end() noexcept;
  /// Executes rank 0's commands until it ends. Throws Error where a rank has failed.
  void serve(Engine& engine);
  /// Threads that are other ranks: `follow(rank's communicator)` in each.
  void start(std::vector<std::unique_ptr<Communicator>> others,
             const std::function<void(std::unique_ptr<Communicator>)>& follow);

 private:
  std::unique_ptr<Communicator> communicator_;
  ModelShard shard_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace cermet
