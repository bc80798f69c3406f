#include "model/sampler.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "model/engine_options.hpp"
#include "select/select.hpp"

namespace cermet {
void check_sampling(const Sampling& sampling) {
  GenerateOptions options;
  options.sampling = sampling;
  for (const OptionRow& row : generate_option_table())
    if (row.name != "top_k") check_range(row, &options, row.name);
  require(sampling.top_k >= 0, "top_k: expected a number >= 0, found {}", sampling.top_k);  // any more than all is all
}

BoundOp bind_choice(std::span<const TensorView> operands, bool greedy, ThreadPool& pool, const DeviceQueue& queue) {
  std::vector<std::optional<TensorType>> types;
  for (const TensorView& operand : greedy ? operands.first(1) : operands)
    types.push_back(operand.present ? std::optional(operand.type()) : std::nullopt);
  Problem problem = make_problem(definition(greedy ? OpKind::argmax : OpKind::sample), std::move(types), {});
  problem.target = queue.device ? queue.device->target() : nullptr;
  return {problem, select_kernel(problem, {.threads = pool.size()}), pool, queue};
}

Sampler::Sampler(const Sampling& sampling, std::int64_t vocab_size, ThreadPool& pool, const DeviceQueue& queue)
    : queue_(queue), greedy_(sampling.temperature == 0 && sampling.repetition_penalty == 1) {
  check_sampling(sampling);
  parameters_ = {static_cast<std::int64_t>(sampling.seed),
                 0,
                 static_cast<float>(sampling.temperature),
                 static_cast<float>(sampling.top_p),
                 static_cast<float>(sampling.min_p),
                 static_cast<float>(sampling.repetition_penalty),
                 sampling.top_k,
                 0};
  if (parameters_.penalty != 1) {
    previous_.assign(static_cast<std::size_t>(vocab_size), -1);
    seen_.assign(static_cast<std::size_t>(vocab_size), false);
  }
  if (queue_.device) {
    device_parameters_ = queue_.device->allocate(sizeof(Parameters));
    device_steps_ = queue_.device->allocate(steps_ahead * static_cast<std::int64_t>(sizeof(std::int64_t)));
    downloads_ = queue_.device->make_stream();
    made_ = downloads_->make_event();
    for (Pending& pending : pending_) {
      pending.id = queue_.device->allocate_host(sizeof(std::int32_t));
      pending.arrived = downloads_->make_event();
    }
    device_previous_ = queue_.device->allocate(static_cast<std::int64_t>(previous_.size() * sizeof(std::int32_t)));
    bind_operands(reinterpret_cast<Parameters*>(device_parameters_.data()),
                  reinterpret_cast<std::int32_t*>(device_previous_.data()), vocab_size);
  } else {
    bind_operands(&parameters_, previous_.data(), vocab_size);
  }
  op_.emplace(bind_choice(operands_, greedy_, pool, queue_));
}

Sampler::~Sampler() {
  if (!queue_.device || started_ == finished_) return;
  try {
    queue_.stream->synchronize();
    downloads_->synchronize();  // a result may still be on its way to memory of this object
  } catch (const Error&) {      // a device that failed writes nothing more
  }
}

void Sampler::bind_operands(Parameters* at, std::int32_t* previous, std::int64_t vocab_size) {
  operands_ = {TensorView(nullptr, DType::f32, {1, vocab_size}),
               TensorView(&at->temperature, DType::f32, {1}),
               TensorView(&at->top_k, DType::i32, {1}),
               TensorView(&at->top_p, DType::f32, {1}),
               TensorView(&at->min_p, DType::f32, {1}),
               TensorView(),
               TensorView(),
               TensorView(&at->seed, DType::i64, {1}),
               TensorView(&at->step, DType::i64, {1})};
  if (!previous_.empty()) {
    operands_[5] = TensorView(&at->penalty, DType::f32, {1});
    operands_[6] = TensorView(previous, DType::i32, {1, vocab_size});
  }
  result_ = TensorView(&at->id, DType::i32, {1});
}

void Sampler::remember(std::span<const std::int32_t> ids) {
  if (previous_.empty()) return;
  for (const std::int32_t id : ids) {
    if (seen_[static_cast<std::size_t>(id)]) continue;
    seen_[static_cast<std::size_t>(id)] = true;
    previous_[seen_count_++] = id;
    previous_changed_ = true;
  }
}

std::int32_t Sampler::next(const TensorView& logits) {
  start(logits);
  return finish();
}

void Sampler::upload_parameters() {
  if (parameters_.step == 0) queue_.stream->upload(device_parameters_.data(), &parameters_, sizeof(Parameters));
  const std::int64_t place = parameters_.step % steps_ahead;
  if (place == 0) {
    std::array<std::int64_t, steps_ahead> steps;
    std::iota(steps.begin(), steps.end(), parameters_.step);
    queue_.stream->upload(device_steps_.data(), steps.data(), device_steps_.size());
  }
  operands_[8].data = device_steps_.data() + place * static_cast<std::int64_t>(sizeof(std::int64_t));
  if (std::exchange(previous_changed_, false))
    queue_.stream->upload(device_previous_.data(), previous_.data(), device_previous_.size());
}

void Sampler::start(const TensorView& logits, std::int32_t* place) {
  CERMET_ASSERT(started_ - finished_ < (has_penalty() ? 1 : pending_.size()));
  operands_[0] = logits;
  Pending& pending = pending_[started_ % pending_.size()];
  if (queue_.device) {
    if (!greedy_) upload_parameters();
    if (started_ > 0)
      queue_.stream->wait(*pending_[(started_ - 1) % pending_.size()].arrived);  // the last result has left its place
  }
  TensorView result = result_;
  if (place) result.data = place;
  op_->run(std::span(operands_).first(greedy_ ? 1 : operands_.size()), {&result, 1});
  ++parameters_.step;
  if (queue_.device) {
    queue_.stream->record(*made_);
    downloads_->wait(*made_);
    downloads_->download(pending.id.data(), result.data, sizeof(std::int32_t));
    downloads_->record(*pending.arrived);
  }
  ++started_;
}

std::int32_t Sampler::finish() {
  CERMET_ASSERT(finished_ < started_);
  Pending& pending = pending_[finished_++ % pending_.size()];
  std::int32_t id = parameters_.id;
  if (queue_.device) {
    downloads_->synchronize_event(*pending.arrived);
    std::memcpy(&id, pending.id.data(), sizeof(id));
  }
  remember({&id, 1});
  return id;
}

}  // namespace cermet
