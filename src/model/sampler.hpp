// The choice of the next token: the operator `sample` on one row of logits.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "model/generate.hpp"
#include "select/bound_op.hpp"

namespace cermet {

class Sampler {
 public:
  /// Logits come in memory of the queue's device, or of the host where it has none. Throws Error naming the parameter that is out of range.
  Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool, const DeviceQueue& queue = {});

  /// Tokens that the repetition penalty knows, besides those that next() returned.
  void remember(std::span<const std::int32_t> ids);
  /// Next token for logits f32[1, vocab_size]; waits for it.
  std::int32_t next(const TensorView& logits);

 private:
  /// What the operator reads besides logits and earlier tokens; on a device, copied there before every call.
  struct Parameters {
    std::int64_t seed = 0, step = 0;
    float temperature = 0, top_p = 0, min_p = 0, penalty = 0;
    std::int32_t top_k = 0, id = 0;  ///< id: the result
  };
  void bind_operands(Parameters* parameters, std::int32_t* previous, std::int64_t vocab_size);

  Parameters parameters_;
  std::vector<std::int32_t> previous_;  ///< distinct ids, padded with -1 to the vocabulary; empty without a penalty
  std::vector<bool> seen_;
  std::size_t seen_count_ = 0;
  bool previous_changed_ = true;
  DeviceQueue queue_;
  DeviceBuffer device_parameters_, device_previous_;
  std::optional<BoundOp> op_;
  std::array<TensorView, 9> operands_;
  TensorView result_;
};

}  // namespace cermet
