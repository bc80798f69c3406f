#include "model/batch_sampler.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "select/select.hpp"

namespace cermet {

std::array<TensorView, 9> BatchSampler::operands(const TensorView& logits) const {
  const Lists& at = read_;
  const Shape rows{logits.shape[0]};
  return {logits,
          TensorView(at.temperature, DType::f32, rows),
          TensorView(at.top_k, DType::i32, rows),
          TensorView(at.top_p, DType::f32, rows),
          TensorView(at.min_p, DType::f32, rows),
          TensorView(),
          TensorView(),
          TensorView(at.seeds, DType::i64, rows),
          TensorView(at.steps, DType::i64, rows)};
}

BatchSampler::Lists::Lists(std::byte* at, std::int64_t sequences) {
  const auto next = [&]<class T>(T*& list) {
    list = reinterpret_cast<T*>(at);
    at += sequences * static_cast<std::int64_t>(sizeof(T));
  };
  next(seeds), next(steps), next(temperature), next(top_p), next(min_p), next(top_k), next(ids);
}

BatchSampler::BatchSampler(std::int64_t sequences, std::int64_t vocab_size, ThreadPool& pool, const DeviceQueue& queue)
    : vocab_size_(vocab_size),
      pool_(pool),
      queue_(queue),
      sequences_(static_cast<std::size_t>(sequences)),
      device_(queue.device ? queue.device->allocate(Lists::bytes(sequences)) : DeviceBuffer()),
      pinned_(queue.device ? queue.device->allocate_host(Lists::bytes(sequences)) : DeviceBuffer()),
      own_(queue.device ? 0 : Lists::bytes(sequences)),
      host_(queue.device ? pinned_.data() : own_.data(), sequences),
      read_(queue.device ? device_.data() : own_.data(), sequences),
      greedy_op_(bind_choice(operands(TensorView(nullptr, DType::f32, {std::ssize(sequences_), vocab_size_})), true,
                             pool, queue)) {
  if (queue_.device) {
    copies_ = queue_.device->make_stream();
    uploaded_ = copies_->make_event();
    made_ = copies_->make_event();
    arrived_ = copies_->make_event();
  }
}

BatchSampler::~BatchSampler() {
  if (!queue_.device) return;
  try {
    queue_.stream->synchronize();
    copies_->synchronize();
  } catch (const Error&) {  // a device that failed writes nothing more
  }
}

void BatchSampler::begin(int sequence, const Sampling& sampling, std::span<const std::int32_t> prompt) {
  check_sampling(sampling);
  Sequence& s = sequences_.at(static_cast<std::size_t>(sequence));
  s = {sampling, 0, nullptr};
  if (sampling.repetition_penalty == 1) {
    if (sampling.temperature > 0 && !op_)
      op_.emplace(bind_choice(operands(TensorView(nullptr, DType::f32, {std::ssize(sequences_), vocab_size_})), false,
                              pool_, queue_));
    return;
  }
  s.alone = std::make_unique<Sampler>(sampling, vocab_size_, pool_, queue_);
  s.alone->remember(prompt);
}

bool BatchSampler::take_largest(std::span<const int> sequences) const {
  return std::ranges::all_of(sequences, [&](int sequence) {
    if (sequence < 0) return true;
    const Sequence& s = sequences_.at(static_cast<std::size_t>(sequence));
    return !s.alone && s.sampling.temperature == 0;
  });
}

/// Rows of no sequence take the largest logit, which costs least.
bool BatchSampler::fill() {
  bool greedy = true;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool own = rows_[i] >= 0 && !alone(i);
    Sequence* const s = own ? &sequences_[static_cast<std::size_t>(rows_[i])] : nullptr;
    const Sampling sampling = own ? s->sampling : Sampling{};
    host_.seeds[i] = static_cast<std::int64_t>(sampling.seed);
    host_.steps[i] = own ? s->step++ : 0;
    host_.temperature[i] = static_cast<float>(sampling.temperature);
    host_.top_p[i] = static_cast<float>(sampling.top_p);
    host_.min_p[i] = static_cast<float>(sampling.min_p);
    host_.top_k[i] = sampling.top_k;
    greedy = greedy && sampling.temperature == 0;
  }
  return greedy;
}

void BatchSampler::run(const TensorView& logits, std::int32_t* place) {
  const TensorView ids(place ? place : read_.ids, DType::i32, {logits.shape[0]});
  const bool greedy = fill();
  if (queue_.device && !greedy) {
    copies_->upload(device_.data(), pinned_.data(), reinterpret_cast<std::byte*>(host_.ids) - pinned_.data());
    copies_->record(*uploaded_);
    queue_.stream->wait(*uploaded_);
  }
  const std::array<TensorView, 9> operands = this->operands(logits);
  if (logits.dtype == DType::i32) {
    CERMET_ASSERT(greedy && take_largest(rows_));
    const std::int64_t bytes = logits.shape[0] * static_cast<std::int64_t>(sizeof(std::int32_t));
    if (queue_.device) queue_.stream->copy(ids.data, logits.data, bytes);
    else std::memcpy(ids.data, logits.data, static_cast<std::size_t>(bytes));
  } else if (greedy) {
    greedy_op_.run(std::span(operands).first(1), {&ids, 1});
  } else {
    op_->run(operands, {&ids, 1});
  }
  if (queue_.device) {
    queue_.stream->record(*made_);
    copies_->wait(*made_);
    copies_->download(host_.ids, ids.data, logits.shape[0] * static_cast<std::int64_t>(sizeof(std::int32_t)));
    copies_->record(*arrived_);
  }
}

void BatchSampler::start(const TensorView& logits, std::span<const int> sequences, std::int32_t* place) {
  CERMET_ASSERT(logits.shape[0] == std::ssize(sequences) && sequences.size() <= sequences_.size());
  rows_.assign(sequences.begin(), sequences.end());
  run(logits, place);
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (Sampler* const sampler = alone(i))
      sampler->start(TensorView(logits.as<float>() + static_cast<std::int64_t>(i) * logits.strides[0], DType::f32,
                                {1, vocab_size_}));
}

std::span<const std::int32_t> BatchSampler::finish() {
  if (queue_.device) copies_->synchronize_event(*arrived_);
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (Sampler* const sampler = alone(i)) host_.ids[i] = sampler->finish();
  return {host_.ids, rows_.size()};
}

std::span<const std::int32_t> BatchSampler::choose(const TensorView& logits, std::span<const int> sequences) {
  start(logits, sequences);
  return finish();
}

}  // namespace cermet
