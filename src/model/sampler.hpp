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
  /// Throws Error naming the parameter that is out of range.
  Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool);

  /// Tokens that the repetition penalty knows, besides those that next() returned.
  void remember(std::span<const std::int32_t> ids);
  /// Next token for logits f32[1, vocab_size].
  std::int32_t next(const TensorView& logits);

 private:
  float temperature_, top_p_, min_p_, penalty_;
  std::int32_t top_k_;
  std::int64_t seed_, step_ = 0;
  std::vector<std::int32_t> previous_;  ///< distinct ids, padded with -1 to the vocabulary; empty without a penalty
  std::vector<bool> seen_;
  std::size_t seen_count_ = 0;
  std::optional<BoundOp> op_;
  std::array<TensorView, 9> operands_;
};

}  // namespace cermet
