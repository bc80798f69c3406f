// Text generation for many prompts at once: continuous batching on top of an engine.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/generate.hpp"

namespace cermet {

struct BatchRequest {
  std::vector<std::int32_t> prompt;
  GenerateOptions options;
};

/// Generates with continuous batching: a finished request makes room for the next. Which tokens a request gets depends
/// on its own options alone: on the CPU, with up to 32 sequences, not even roundings differ from generate()'s.
class BatchGenerator {
 public:
  struct Events {
    std::function<void(std::size_t request, std::int32_t id)> on_token = {};
    /// The last that is heard of a request. Times are of the wall clock: prefill from admission to the first token,
    /// decode from there on, beside the other sequences.
    std::function<void(std::size_t request, const Generation& result)> on_done = {};
  };

  /// Uses all sequences of the engine, whose contexts it forgets. The engine must outlive it.
  BatchGenerator(Engine& engine, Events events);
  ~BatchGenerator();

  /// Puts a request at the end of the queue, also between passes; returns its number, counted from 0. Throws Error
  /// naming what is out of range: an empty prompt, one that is longer than the context, an unknown token, an option.
  std::size_t add(BatchRequest request);
  /// Computes one pass. False when every request is done. Once a step has thrown, be it from an event, step() and add()
  /// throw Error: requests may only be cancelled.
  bool step();
  /// Ends a request with End::cancelled; its place is free for the next pass. Throws Error where none of that number is
  /// under way.
  void cancel(std::size_t request);
  /// Ends every request that is not done.
  void cancel();
  /// Requests that are not done.
  std::size_t pending() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cermet
