// Engines that answer the same prompts again and again, to find what changes, grows or hangs only after many steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/engine.hpp"

namespace cermet::cli {

/// One engine. Every answer is held against the first one to the same prompt: new tokens, and the bits of the logits
/// behind the last.
class Soaker {
 public:
  /// `tokens`: decode steps of a round. Prompts are those of no other number.
  Soaker(Engine engine, int number, std::int64_t tokens);
  /// Prompts of the longest round, and what follows them.
  static std::int64_t context_of(std::int64_t tokens);

  /// Answers every prompt for the first time.
  void learn();
  /// Whole rounds until there have been so many steps. Throws Error(internal) naming engine, round and what differs,
  /// and Error(cancelled) after Ctrl-C.
  void work(std::int64_t steps);
  std::int64_t steps() const { return steps_; }
  std::int64_t rounds() const { return rounds_; }
  Engine& engine() { return engine_; }

 private:
  struct Answer {
    std::vector<std::int32_t> ids;
    std::vector<float> logits;
  };
  Answer answer(std::span<const std::int32_t> prompt);
  void compare(std::size_t prompt, const Answer& found) const;

  Engine engine_;
  int number_;
  std::int64_t tokens_, rounds_ = 0;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::vector<Answer> first_;
  std::atomic<std::int64_t> steps_{0};
};

/// Lets all of them work at the same time, each in a thread of its own, until each has done so many steps. Rethrows the
/// first error. Throws Error(internal) where one makes no step for `patience` seconds: its thread then goes on beside
/// the caller, with the engines.
void work_together(const std::vector<std::shared_ptr<Soaker>>& soakers, std::int64_t steps, double patience);

}  // namespace cermet::cli
