#include "model/sampler.hpp"

#include "select/select.hpp"

namespace cermet {

Sampler::Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool) {
  if (sampling.temperature != 0) fail(Status::unsupported, "temperature: expected 0 (greedy), found {}", sampling.temperature);
  const Problem problem = make_problem(definition(OpKind::argmax), {TensorType{DType::f32, {1, vocab_size}}}, {});
  op_.emplace(problem, select_kernel(problem), pool);
}

void Sampler::remember(std::span<const std::int32_t>) {}

std::int32_t Sampler::next(const TensorView& logits) {
  std::int32_t id = 0;
  const TensorView result(&id, DType::i32, {1});
  op_->run({&logits, 1}, {&result, 1});
  return id;
}

}  // namespace cermet
