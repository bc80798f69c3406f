// The choice of the next token: the operator `sample`, or argmax, on one row of logits.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "model/generate.hpp"
#include "select/bound_op.hpp"

namespace cermet {

/// The operator that chooses a token of each row of logits: `sample` on its operands, or argmax of the first where a
/// choice is `greedy`, which is the same.
BoundOp bind_choice(std::span<const TensorView> operands, bool greedy, ThreadPool& pool, const DeviceQueue& queue);

class Sampler {
 public:
  /// Logits come in memory of the queue's device, or of the host where it has none. Throws Error naming the parameter
  /// that is out of range.
  Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool, const DeviceQueue& queue = {});
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Tokens that the repetition penalty knows, besides those that next() returned.
  void remember(std::span<const std::int32_t> ids);
  /// Next token for logits f32[1, vocab_size]; waits for it.
  std::int32_t next(const TensorView& logits);
  /// The same in two halves, so that a device can go on: start() enqueues the choice, and finish() waits for the oldest
  /// one that was started. At most two may be under way, and with a repetition penalty one. `place`, where given, is
  /// device memory that gets the choice, too.
  void start(const TensorView& logits, std::int32_t* place = nullptr);
  std::int32_t finish();
  /// Whether a choice depends on the tokens before it beyond their logits.
  bool has_penalty() const { return !previous_.empty(); }

 private:
  /// What the operator reads besides logits and earlier tokens; on a device, copied there before the first call, but
  /// for the step.
  struct Parameters {
    std::int64_t seed = 0, step = 0;
    float temperature = 0, top_p = 0, min_p = 0, penalty = 0;
    std::int32_t top_k = 0, id = 0;  ///< id: the result
  };
  /// Pinned memory for a result on its way to the host.
  struct Pending {
    DeviceBuffer id;
    std::unique_ptr<DeviceEvent> arrived;
  };
  /// Numbers of steps that the device holds at a time, so that a step copies nothing.
  static constexpr std::int64_t steps_ahead = 1024;
  void bind_operands(Parameters* at, std::int32_t* previous, std::int64_t vocab_size);
  void upload_parameters();

  Parameters parameters_;
  std::vector<std::int32_t> previous_;  ///< distinct ids, padded with -1 to the vocabulary; empty without a penalty
  std::vector<bool> seen_;
  std::size_t seen_count_ = 0;
  bool previous_changed_ = true;
  DeviceQueue queue_;
  DeviceBuffer device_parameters_, device_steps_, device_previous_;
  std::unique_ptr<Stream> downloads_;  ///< so that the queue's stream does not wait while a result leaves
  std::unique_ptr<DeviceEvent> made_;
  std::array<Pending, 2> pending_;
  std::size_t started_ = 0, finished_ = 0;
  bool greedy_;
  std::optional<BoundOp> op_;
  std::array<TensorView, 9> operands_;
  TensorView result_;
};

}  // namespace cermet
