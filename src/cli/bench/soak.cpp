#include "cli/bench/soak.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "cli/ui/interrupt.hpp"
#include "model/generate.hpp"

namespace cermet::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Shorter than a block of the cache, as long as one, and longer.
constexpr std::array<std::int64_t, 4> prompt_lengths{3, 16, 37, 9};

/// What threads of one call share with it; they may outlive it.
struct Phase {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0;
  std::vector<bool> done;
  std::exception_ptr error;
};

void run_soaker(Phase& phase, std::size_t index, Soaker& soaker, std::int64_t steps) {
  std::exception_ptr error;
  try {
    soaker.work(steps);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(phase.mutex);
  if (error && !phase.error) phase.error = error;
  phase.done[index] = true;
  --phase.running;
  phase.ended.notify_all();
}

/// When each of them has made its last step, as far as was seen.
class Watch {
 public:
  Watch(const std::vector<std::shared_ptr<Soaker>>& soakers, double patience)
      : soakers_(soakers), patience_(patience), steps_(soakers.size(), -1), since_(soakers.size(), Clock::now()) {}
  void look(const std::vector<bool>& done) {
    const Clock::time_point now = Clock::now();
    for (std::size_t s = 0; s < soakers_.size(); ++s) {
      if (const std::int64_t steps = soakers_[s]->steps(); done[s] || steps != steps_[s]) {
        steps_[s] = steps;
        since_[s] = now;
      } else if (std::chrono::duration<double>(now - since_[s]).count() > patience_) {
        fail(Status::internal, "soak: engine {}: expected a step within {:g} s, found none after step {}", s, patience_,
             steps);
      }
    }
  }

 private:
  const std::vector<std::shared_ptr<Soaker>>& soakers_;
  double patience_;
  std::vector<std::int64_t> steps_;
  std::vector<Clock::time_point> since_;
};

}  // namespace

Soaker::Soaker(Engine engine, int number, std::int64_t tokens)
    : engine_(std::move(engine)), number_(number), tokens_(tokens) {
  const std::int64_t vocabulary = engine_.config().vocab_size;
  for (std::size_t p = 0; p < prompt_lengths.size(); ++p) {
    std::vector<std::int32_t>& prompt = prompts_.emplace_back();
    for (std::int64_t i = 0; i < prompt_lengths[p]; ++i)
      prompt.push_back(
          static_cast<std::int32_t>(((number * 4 + static_cast<std::int64_t>(p) + 1) * 7919 + i * 131) % vocabulary));
  }
}

std::int64_t Soaker::context_of(std::int64_t tokens) { return *std::ranges::max_element(prompt_lengths) + tokens + 1; }

/// The first token comes with the prompt's pass, so that a round's last step is the one whose logits are kept.
Soaker::Answer Soaker::answer(std::span<const std::int32_t> prompt) {
  engine_.reset(0);
  GenerateOptions options;
  options.max_new_tokens = tokens_;
  options.cancelled = &interrupted();
  Answer made;
  made.ids =
      generate(engine_, prompt, options, [this](std::int32_t) { steps_.fetch_add(1, std::memory_order_relaxed); }).ids;
  stop_if_interrupted();
  const SequenceTokens last{0, {&made.ids.back(), 1}};
  const TensorView logits = engine_.forward({&last, 1}, Engine::Logits::last);
  made.logits.assign(logits.as<float>(), logits.as<float>() + logits.elements());
  return made;
}

void Soaker::compare(std::size_t prompt, const Answer& found) const {
  const Answer& first = first_[prompt];
  const std::string where =
      fmt::format("soak: engine {}, round {} (after {} steps), prompt {}", number_, rounds_, steps(), prompt);
  for (std::size_t i = 0; i < first.ids.size(); ++i)
    if (found.ids[i] != first.ids[i])
      fail(Status::internal, "{}: expected token {} of the answer to be {} as at first, found {}", where, i,
           first.ids[i], found.ids[i]);
  for (std::size_t i = 0; i < first.logits.size(); ++i)
    if (std::bit_cast<std::uint32_t>(found.logits[i]) != std::bit_cast<std::uint32_t>(first.logits[i]))
      fail(Status::internal, "{}: expected logit {} behind the answer to be {:.9g} as at first, found {:.9g}", where, i,
           first.logits[i], found.logits[i]);
}

void Soaker::learn() {
  for (const auto& prompt : prompts_) first_.push_back(answer(prompt));
  steps_ = 0;
}

void Soaker::work(std::int64_t steps) {
  while (steps_ < steps) {
    const std::size_t prompt = static_cast<std::size_t>(rounds_++) % prompts_.size();
    compare(prompt, answer(prompts_[prompt]));
  }
}

void work_together(const std::vector<std::shared_ptr<Soaker>>& soakers, std::int64_t steps, double patience) {
  const auto phase = std::make_shared<Phase>();
  phase->running = soakers.size();
  phase->done.resize(soakers.size());
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < soakers.size(); ++s)
    threads.emplace_back([phase, s, soaker = soakers[s], steps] { run_soaker(*phase, s, *soaker, steps); });
  Watch watch(soakers, patience);
  const auto pause = std::chrono::duration<double>(std::clamp(patience / 10, 0.0001, 0.5));
  try {
    std::unique_lock lock(phase->mutex);
    while (!phase->ended.wait_for(lock, pause, [&] { return phase->running == 0; })) watch.look(phase->done);
  } catch (...) {
    for (std::thread& thread : threads) thread.detach();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  if (phase->error) std::rethrow_exception(phase->error);
}

}  // namespace cermet::cli
