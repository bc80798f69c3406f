#include "model/generate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "model/sampler.hpp"

namespace cermet {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool is_cancelled(const std::atomic<bool>* flag) { return flag && flag->load(std::memory_order_relaxed); }

/// Negative log-likelihood of `target` under a row of logits.
double surprise(const float* logits, std::int64_t vocab_size, std::int32_t target) {
  float highest = logits[0];
  for (std::int64_t i = 1; i < vocab_size; ++i) highest = std::max(highest, logits[i]);
  double sum = 0;
  for (std::int64_t i = 0; i < vocab_size; ++i) sum += static_cast<double>(std::exp(logits[i] - highest));
  return std::log(sum) + static_cast<double>(highest) - static_cast<double>(logits[target]);
}

/// Sums behind a perplexity and its standard error.
struct Tally {
  double sum = 0, squares = 0;
  std::int64_t tokens = 0;

  void add(double s) {
    sum += s;
    squares += s * s;
    ++tokens;
  }

  Perplexity result(double seconds) const {
    const double n = static_cast<double>(tokens), mean = sum / n, value = std::exp(mean);
    const double variance = tokens > 1 ? std::max(0.0, (squares - n * mean * mean) / (n - 1)) : 0;
    return {value, value * std::sqrt(variance / n), tokens, seconds};
  }
};

/// Scores every token of a window but the first, in a fresh context.
void score_window(Engine& engine, std::span<const std::int32_t> tokens, Tally& tally) {
  engine.reset(0);
  const auto chunk = static_cast<std::size_t>(engine.max_batch_tokens());
  std::vector<double> surprises(std::min(chunk, tokens.size()));
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const SequenceTokens part{0, tokens.subspan(begin, std::min(chunk, tokens.size() - begin)), std::ssize(tokens)};
    const TensorView logits = engine.forward({&part, 1}, Engine::Logits::all);
    const Rows rows(logits);
    const auto scored = static_cast<std::int64_t>(
        std::min(part.tokens.size(), tokens.size() - 1 - begin));  // the last token predicts nothing
    engine.pool().parallel_for(scored, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
        surprises[static_cast<std::size_t>(i)] = surprise(reinterpret_cast<const float*>(rows.row(i)), rows.length(),
                                                          tokens[begin + static_cast<std::size_t>(i) + 1]);
    });
    for (std::int64_t i = 0; i < scored; ++i) tally.add(surprises[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

std::string_view name_of(Generation::End end) {
  switch (end) {
    case Generation::End::length: return "length";
    case Generation::End::stop: return "stop";
    case Generation::End::context: return "context";
    case Generation::End::cancelled: return "cancelled";
  }
  return "";
}

void check_steps(const Engine& engine, const Sampling& sampling) {
  require(sampling.repetition_penalty == 1 || engine.steps_per_launch() == 1,
          "repetition_penalty: expected 1 with {} steps per launch, between which the host sees no token, found {}",
          engine.steps_per_launch(), sampling.repetition_penalty);
}

double Generation::prefill_tokens_per_second() const {
  return prefill_seconds > 0 ? static_cast<double>(prompt_tokens) / prefill_seconds : 0;
}

double Generation::decode_tokens_per_second() const {
  return ids.size() > 1 && decode_seconds > 0 ? static_cast<double>(ids.size() - 1) / decode_seconds : 0;
}

namespace {

/// Tokens of sequence 0, one after the other. A device computes the step after a token while the host still waits for
/// the token itself.
class TokenStream {
 public:
  TokenStream(Engine& engine, Sampler& sampler)
      : engine_(engine),
        sampler_(sampler),
        ahead_(engine.queue().device && engine.computes() && !sampler.has_penalty()) {}

  /// Logits that the next token is chosen from.
  void begin(const TensorView& logits) {
    if (ahead_) sampler_.start(logits, engine_.chosen_ids(1));
    else logits_ = logits;
  }
  /// The next token; with `more`, its logits are under way when this returns.
  std::int32_t next(bool more) {
    if (!ahead_) return checked(sampler_.next(logits_));
    if (more) logits_ = engine_.forward_chosen(std::array{0});
    const std::int32_t id = checked(sampler_.finish());
    if (more) sampler_.start(logits_, engine_.chosen_ids(1));
    return id;
  }
  /// Goes on after `id`, which next() returned with `more`.
  void accept(const std::int32_t& id) {
    if (ahead_) return;
    const SequenceTokens step{0, {&id, 1}};
    logits_ = engine_.forward({&step, 1}, Engine::Logits::last, Engine::Memory::device);
  }
  /// Takes back the token that next() returned with `more`.
  void reject() {
    if (!ahead_) return;
    sampler_.finish();
    engine_.drop(0, 1);
  }

 private:
  /// The id, if the step that it was made by came to its end.
  std::int32_t checked(std::int32_t id) {
    engine_.last_executable().check_waits();
    return id;
  }

  Engine& engine_;
  Sampler& sampler_;
  bool ahead_;
  TensorView logits_;
};

/// Takes token after token, and says when it is enough.
struct Progress {
  const GenerateOptions& options;
  const std::function<void(std::int32_t)>& on_token;
  Generation& result;
  Stopwatch decode = {};

  std::int64_t left() const { return options.max_new_tokens - std::ssize(result.ids); }
  bool cancelled() const { return is_cancelled(options.cancelled); }
  /// Whether generation goes on after a token; `is_full`: the cache has no room for it.
  bool take(std::int32_t id, bool is_full, bool is_cancelled) {
    const bool stop = std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    if (stop || is_cancelled) {
      result.end = stop && !is_cancelled ? Generation::End::stop : Generation::End::cancelled;
      return false;
    }
    result.ids.push_back(id);
    if (result.ids.size() == 1)
      result.decode_seconds = -decode.seconds();  // the first token's choice belongs to no decode step
    if (on_token) on_token(id);
    if (is_full && left() > 0) result.end = Generation::End::context;
    return left() > 0 && !is_full;
  }
};

void decode_one_by_one(Engine& engine, Sampler& sampler, const TensorView& logits, Progress& progress) {
  TokenStream tokens(engine, sampler);
  tokens.begin(logits);
  for (;;) {
    const bool full = engine.room(0) == 0, cancelled = progress.cancelled(),
               more = progress.left() > 1 && !full && !cancelled;
    if (!progress.take(tokens.next(more), full, cancelled)) {
      if (more) tokens.reject();
      return;
    }
    tokens.accept(progress.result.ids.back());
  }
}

/// Steps that choose their tokens themselves, from the second one on.
void decode_in_rows(Engine& engine, Sampler& sampler, const TensorView& logits, Progress& progress) {
  bool more = progress.take(sampler.next(logits), engine.room(0) == 0, progress.cancelled());
  while (more) {
    const StepSequence sequence{0, progress.result.ids.back(), progress.options.sampling,
                                std::ssize(progress.result.ids)};
    const std::int64_t room = engine.room(0);
    std::int64_t step = 0;
    engine.decode({&sequence, 1}, progress.left(), [&](std::span<const std::int32_t> ids) {
      more = progress.take(ids[0], ++step == room, progress.cancelled());
      return more ? AfterStep::go_on : AfterStep::stop;
    });
  }
}

}  // namespace

Generation generate(Engine& engine, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                    const std::function<void(std::int32_t)>& on_token, std::span<const std::int32_t> earlier) {
  require(options.max_new_tokens >= 0, "new tokens: expected a non-negative number, found {}", options.max_new_tokens);
  require(!prompt.empty(), "prompt: expected at least one token, found none");
  check_steps(engine, options.sampling);
  Sampler sampler(options.sampling, engine.config().vocab_size, engine.pool(), engine.queue());
  if (options.max_new_tokens > 1 && engine.chooses(options.sampling)) engine.prepare_decode(1, options.sampling);
  Generation result;
  result.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  const Stopwatch prefill;
  const TensorView logits = engine.prefill(0, prompt, Engine::Memory::device);
  if (engine.queue().stream) {
    engine.queue().stream->synchronize();
    engine.last_executable().check_waits();  // the steps that follow are those of another one
  }
  result.prefill_seconds = prefill.seconds();
  if (options.max_new_tokens == 0) return result;
  sampler.remember(earlier);
  sampler.remember(prompt);
  Progress progress{options, on_token, result};
  if (engine.chooses(options.sampling)) decode_in_rows(engine, sampler, logits, progress);
  else decode_one_by_one(engine, sampler, logits, progress);
  result.decode_seconds += progress.decode.seconds();
  return result;
}

Perplexity evaluate(Engine& engine, std::span<const std::int32_t> ids, std::int64_t window,
                    const std::atomic<bool>* cancelled,
                    const std::function<void(std::int64_t, std::int64_t)>& on_progress) {
  require(window >= 2, "window: expected at least 2 tokens, found {}", window);
  const std::int64_t windows = static_cast<std::int64_t>(ids.size()) / window;
  require(windows > 0, "text: expected at least one window of {} tokens, found {} tokens", window, ids.size());
  const Stopwatch watch;
  Tally tally;
  for (std::int64_t w = 0; w < windows; ++w) {
    if (is_cancelled(cancelled)) fail(Status::cancelled, "evaluation: cancelled after {} of {} windows", w, windows);
    score_window(engine, ids.subspan(static_cast<std::size_t>(w * window), static_cast<std::size_t>(window)), tally);
    if (on_progress) on_progress(w + 1, windows);
  }
  return tally.result(watch.seconds());
}

}  // namespace cermet
