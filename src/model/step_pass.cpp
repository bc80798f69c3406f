#include "model/step_pass.hpp"

#include <algorithm>

#include "model/decoder_choice.hpp"

namespace cermet {

ChoiceInputs::Lists::Lists(std::byte* at, std::int64_t sequences) {
  const auto next = [&]<class T>(T*& list, std::int64_t length) {
    list = reinterpret_cast<T*>(at);
    at += length * static_cast<std::int64_t>(sizeof(T));
  };
  next(seeds, sequences), next(draws, sequences), next(temperature, sequences), next(top_p, sequences),
      next(min_p, sequences), next(top_k, sequences);
  next(count, 1);
}

ChoiceInputs::ChoiceInputs(std::int64_t sequences, std::int64_t rows, const DeviceQueue& queue)
    : sequences_(sequences), rows_(rows), queue_(queue) {
  const std::int64_t made_bytes = rows * sequences * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (queue_.device) {
    device_ = queue_.device->allocate(Lists::bytes(sequences));
    pinned_ = queue_.device->allocate_host(Lists::bytes(sequences));
    pinned_made_ = queue_.device->allocate_host(made_bytes);
    made_ = pinned_made_.data();
  } else {
    own_ = AlignedBuffer(Lists::bytes(sequences));
    own_made_ = AlignedBuffer(made_bytes);
    made_ = own_made_.data();
  }
}

void ChoiceInputs::bind(Executable& executable, bool greedy) const {
  const Lists at(queue_.device ? device_.data() : const_cast<std::byte*>(own_.data()), sequences_);
  const Shape each{sequences_};
  executable.bind(decoder_io::draws, TensorView(at.draws, DType::i64, each));
  executable.bind(decoder_io::made,
                  TensorView(reinterpret_cast<std::int32_t*>(made_), DType::i32, {rows_, sequences_}));
  executable.bind(decoder_io::count, TensorView(at.count, DType::i32, {1}));
  if (greedy) return;
  executable.bind(decoder_io::temperature, TensorView(at.temperature, DType::f32, each));
  executable.bind(decoder_io::top_k, TensorView(at.top_k, DType::i32, each));
  executable.bind(decoder_io::top_p, TensorView(at.top_p, DType::f32, each));
  executable.bind(decoder_io::min_p, TensorView(at.min_p, DType::f32, each));
  executable.bind(decoder_io::seeds, TensorView(at.seeds, DType::i64, each));
}

void ChoiceInputs::begin(std::span<const StepSequence> sequences) {
  const Lists at(queue_.device ? pinned_.data() : own_.data(), sequences_);
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const Sampling& sampling = sequences[b].sampling;
    at.seeds[b] = static_cast<std::int64_t>(sampling.seed);
    at.draws[b] = sequences[b].draws;
    at.temperature[b] = static_cast<float>(sampling.temperature);
    at.top_k[b] = sampling.top_k;
    at.top_p[b] = static_cast<float>(sampling.top_p);
    at.min_p[b] = static_cast<float>(sampling.min_p);
  }
  *at.count = 0;
  for (std::int64_t i = 0; i < rows_; ++i) std::fill_n(row(i), sequences_, absent);
  if (queue_.device) queue_.stream->upload(device_.data(), pinned_.data(), device_.size());
}

StepPass::StepPass(std::int64_t most_tokens, std::int64_t sequences, std::int64_t pages, std::int64_t rows,
                   bool is_greedy, Graph graph, Context& machine, WeightStore& weights, const SessionOptions& options)
    : tokens(most_tokens),
      greedy(is_greedy),
      inputs(most_tokens, sequences, pages, machine.queue()),
      choice(sequences, rows, machine.queue()),
      session(std::move(graph), machine, weights, options),
      ended(machine.stream() ? machine.stream()->make_event() : nullptr) {
  inputs.bind(session.executable());
  choice.bind(session.executable(), greedy);
}

bool ChoiceInputs::are_there(std::int64_t step, std::int64_t sequences) const {
  const volatile std::int32_t* const at = row(step);
  return std::all_of(at, at + sequences, [](std::int32_t id) { return id != absent; });
}

void ChoiceInputs::take(std::int64_t step, std::span<std::int32_t> ids) {
  volatile std::int32_t* const at = row(step);
  for (std::size_t b = 0; b < ids.size(); ++b) {
    ids[b] = at[b];
    at[b] = absent;
  }
}

}  // namespace cermet
