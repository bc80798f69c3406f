#include "cli/bench/bench_batch.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "model/batch_sampler.hpp"

namespace cermet::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Round {
 public:
  Round(Engine& engine, std::int64_t prompt_tokens, const std::function<void()>& on_step)
      : engine_(engine),
        on_step_(on_step),
        ids_(static_cast<std::size_t>(engine.cache_size().sequences)),
        sampler_(engine.cache_size().sequences, engine.config().vocab_size, engine.pool(), engine.queue()) {
    for (int s = 0; s < std::ssize(ids_); ++s) {
      prompts_.push_back(some_ids(prompt_tokens, engine.config().vocab_size,
                                  s * prompt_tokens));  // alike, they would all choose the same experts
      engine.reset(s);
      sampler_.begin(s, {});
    }
    if (engine.chooses({})) engine.prepare_decode(std::ssize(ids_), {});
  }

  void prefill() {
    const auto most = static_cast<std::size_t>(engine_.max_batch_tokens());
    std::vector<SequenceTokens> pass;
    std::size_t tokens = 0;
    const auto flush = [&] {
      if (!pass.empty()) run(pass);
      pass.clear();
      tokens = 0;
    };
    for (std::size_t s = 0; s < ids_.size(); ++s) {
      const std::span<const std::int32_t> prompt(prompts_[s]);
      for (std::size_t begin = 0; begin < prompt.size(); begin += most) {
        const std::span<const std::int32_t> part = prompt.subspan(begin, std::min(most, prompt.size() - begin));
        if (begin > 0 || tokens + part.size() > most) flush();  // a sequence has one part of a pass
        pass.push_back({static_cast<int>(s), part});
        tokens += part.size();
      }
    }
    flush();
  }

  /// A device computes a step while the host still waits for the tokens that it begins with, as BatchGenerator has it.
  void decode(std::int64_t steps) {
    if (engine_.chooses({})) return decode_in_rows(steps);
    const bool ahead = engine_.queue().device && engine_.computes();
    std::vector<int> sequences(ids_.size());
    std::iota(sequences.begin(), sequences.end(), 0);
    TensorView logits;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (!ahead || step == 0) logits = forward_last();
      on_step_();
      sampler_.start(logits, sequences, ahead ? engine_.chosen_ids(std::ssize(ids_)) : nullptr);
      if (ahead && step + 1 < steps) logits = engine_.forward_chosen(sequences, Engine::Logits::largest);
      std::ranges::copy(sampler_.finish(), ids_.begin());
    }
  }

 private:
  void decode_in_rows(std::int64_t steps) {
    std::vector<StepSequence> rows;
    for (std::size_t s = 0; s < ids_.size(); ++s) rows.push_back({static_cast<int>(s), ids_[s], {}, 1});
    engine_.decode(rows, steps, [&](std::span<const std::int32_t> ids) {
      std::ranges::copy(ids, ids_.begin());
      on_step_();
      return AfterStep::go_on;
    });
  }

  /// A step after the tokens that were chosen.
  TensorView forward_last() {
    std::vector<SequenceTokens> pass;
    for (std::size_t s = 0; s < ids_.size(); ++s) pass.push_back({static_cast<int>(s), {&ids_[s], 1}});
    return engine_.forward(pass, Engine::Logits::largest, Engine::Memory::device);
  }

  /// A pass, and the next token of each of its sequences.
  void run(std::span<const SequenceTokens> pass) {
    on_step_();
    const TensorView logits = engine_.forward(pass, Engine::Logits::largest, Engine::Memory::device);
    std::vector<int> sequences;
    for (const SequenceTokens& part : pass) sequences.push_back(part.sequence);
    const std::span<const std::int32_t> chosen = sampler_.choose(logits, sequences);
    for (std::size_t i = 0; i < pass.size(); ++i) ids_[static_cast<std::size_t>(pass[i].sequence)] = chosen[i];
  }

  Engine& engine_;
  const std::function<void()>& on_step_;
  std::vector<std::vector<std::int32_t>> prompts_;
  std::vector<std::int32_t> ids_;  ///< the last token of each sequence
  BatchSampler sampler_;
};

}  // namespace

std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t vocab_size, std::int64_t first) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>(((static_cast<std::uint64_t>(first) + i) * 2654435761u) %
                                       static_cast<std::uint64_t>(vocab_size));
  return ids;
}

BatchTimes time_batch(Engine& engine, std::int64_t prompt_tokens, std::int64_t new_tokens,
                      const std::function<void()>& on_step) {
  Round round(engine, prompt_tokens, on_step);
  BatchTimes times;
  const Clock::time_point start = Clock::now();
  round.prefill();
  times.prefill = seconds_since(start);
  const Clock::time_point decoding = Clock::now();
  round.decode(new_tokens);
  times.decode = seconds_since(decoding);
  return times;
}

}  // namespace cermet::cli
