// The choice of the next token: the operators `argmax` and `sample` on one row of logits.
#pragma once

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
  std::optional<BoundOp> op_;
};

}  // namespace cermet
