#include "model/sampler.hpp"

#include "select/select.hpp"

namespace cermet {
void check_sampling(const Sampling& s) {
  require(s.temperature >= 0 && s.temperature <= 1e6, "temperature: expected 0 to 1e6, found {}", s.temperature);
  require(s.top_k >= 0, "top_k: expected a non-negative number, found {}", s.top_k);
  require(s.top_p > 0 && s.top_p <= 1, "top_p: expected a number in (0, 1], found {}", s.top_p);
  require(s.min_p >= 0 && s.min_p <= 1, "min_p: expected a number in [0, 1], found {}", s.min_p);
  require(s.repetition_penalty > 0 && s.repetition_penalty <= 1e6, "repetition_penalty: expected a number in (0, 1e6], found {}", s.repetition_penalty);
}

Sampler::Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool)
    : temperature_(static_cast<float>(sampling.temperature)),
      top_p_(static_cast<float>(sampling.top_p)),
      min_p_(static_cast<float>(sampling.min_p)),
      penalty_(static_cast<float>(sampling.repetition_penalty)),
      top_k_(sampling.top_k),
      seed_(static_cast<std::int64_t>(sampling.seed)) {
  check_sampling(sampling);
  operands_ = {TensorView(nullptr, DType::f32, {1, vocab_size}),
               TensorView(&temperature_, DType::f32, {1}),
               TensorView(&top_k_, DType::i32, {1}),
               TensorView(&top_p_, DType::f32, {1}),
               TensorView(&min_p_, DType::f32, {1}),
               TensorView(),
               TensorView(),
               TensorView(&seed_, DType::i64, {1}),
               TensorView(&step_, DType::i64, {1})};
  if (penalty_ != 1) {
    previous_.assign(static_cast<std::size_t>(vocab_size), -1);
    seen_.assign(static_cast<std::size_t>(vocab_size), false);
    operands_[5] = TensorView(&penalty_, DType::f32, {1});
    operands_[6] = TensorView(previous_.data(), DType::i32, {1, vocab_size});
  }
  std::vector<std::optional<TensorType>> types;
  for (const TensorView& operand : operands_) types.push_back(operand.present ? std::optional(operand.type()) : std::nullopt);
  const Problem problem = make_problem(definition(OpKind::sample), std::move(types), {});
  op_.emplace(problem, select_kernel(problem), pool);
}

void Sampler::remember(std::span<const std::int32_t> ids) {
  if (previous_.empty()) return;
  for (const std::int32_t id : ids) {
    if (seen_[static_cast<std::size_t>(id)]) continue;
    seen_[static_cast<std::size_t>(id)] = true;
    previous_[seen_count_++] = id;
  }
}

std::int32_t Sampler::next(const TensorView& logits) {
  std::int32_t id = 0;
  const TensorView result(&id, DType::i32, {1});
  operands_[0] = logits;
  op_->run(operands_, {&result, 1});
  ++step_;
  remember({&id, 1});
  return id;
}

}  // namespace cermet
