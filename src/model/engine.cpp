#include "model/engine.hpp"

#include "model/engine_choices.hpp"
#include "model/engine_state.hpp"

namespace cermet {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

bool Engine::leads() const { return !state_->ranks || state_->ranks->leads(); }

bool Engine::shares_experts() const { return state_->beside != nullptr; }
bool Engine::forward_nothing() { return state_->forward_nothing(); }

void Engine::serve() {
  CERMET_ASSERT(!leads());
  state_->ranks->serve(*this);
}

const ModelConfig& Engine::config() const { return state_->config(); }
DType Engine::dtype() const { return state_->operands; }
std::string Engine::device_name() const { return state_->machine.device().name(); }
int Engine::threads() const { return state_->machine.pool().size(); }
std::int64_t Engine::max_batch_tokens() const { return state_->options.max_batch_tokens; }
CacheSize Engine::cache_size() const {
  return {state_->pages, engine::block_size, state_->options.max_sequences, state_->context};
}
std::int64_t Engine::short_pass_tokens() const { return state_->stream() ? 0 : state_->passes.front().tokens; }

TensorView Engine::forward(std::span<const SequenceTokens> batch, Logits which, Memory memory) {
  return state_->forward(batch, which, memory);
}
bool Engine::computes() const { return state_->machine.computes(); }
DeviceQueue Engine::queue() const { return state_->machine.queue(); }

TensorView Engine::prefill(int sequence, std::span<const std::int32_t> tokens, Memory memory) {
  state_->check_sequence(sequence);
  require(!tokens.empty(), "sequence {}: expected at least one token, found none", sequence);
  require(static_cast<std::int64_t>(tokens.size()) <= room(sequence),
          "sequence {}: expected at most {} more tokens (context of {}), found {}", sequence, room(sequence),
          state_->context, tokens.size());
  TensorView logits;
  const auto chunk = static_cast<std::size_t>(state_->options.max_batch_tokens);
  const std::int64_t whole = length(sequence) + std::ssize(tokens);
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const SequenceTokens part{sequence, tokens.subspan(begin, std::min(chunk, tokens.size() - begin)), whole};
    logits = state_->forward({&part, 1}, Logits::last, memory);
  }
  return logits;
}

std::int32_t* Engine::chosen_ids(std::int64_t sequences) {
  CERMET_ASSERT(state_->stream() != nullptr);
  return state_->pass_for(sequences).inputs->ids_in_graph();
}

TensorView Engine::forward_chosen(std::span<const int> sequences, Logits which) {
  CERMET_ASSERT(state_->stream() != nullptr);
  constexpr std::int32_t placeholder = 0;
  std::vector<SequenceTokens> step;
  for (const int sequence : sequences) step.push_back({sequence, {&placeholder, 1}});
  return state_->forward(step, which, Memory::device, true);
}

bool Engine::chooses(const Sampling& sampling) const { return state_->chooses() && sampling.repetition_penalty == 1; }

std::int64_t Engine::steps_per_launch() const { return state_->options.steps_per_launch; }

void Engine::prepare_decode(std::int64_t sequences, const Sampling& sampling) {
  CERMET_ASSERT(chooses(sampling));
  state_->step_pass(sequences, sampling.is_greedy());
}

std::int64_t Engine::decode(std::span<const StepSequence> sequences, std::int64_t most,
                            FunctionRef<AfterStep(std::span<const std::int32_t> ids)> after) {
  return state_->decode(sequences, most, after);
}

void Engine::drop(int sequence, std::int64_t tokens) {
  state_->check_sequence(sequence);
  require(tokens >= 0 && tokens <= length(sequence), "sequence {}: expected 0 to {} tokens to drop, found {}", sequence,
          length(sequence), tokens);
  state_->tell({.kind = RankCommand::Kind::drop, .sequence = sequence, .tokens = tokens});
  state_->cache.drop(sequence, tokens);
}

void Engine::reset(int sequence) {
  state_->check_sequence(sequence);
  state_->tell({.kind = RankCommand::Kind::reset, .sequence = sequence});
  state_->cache.release(sequence);
}

std::int64_t Engine::length(int sequence) const {
  state_->check_sequence(sequence);
  return state_->cache.length(sequence);
}

std::int64_t Engine::room(int sequence) const {
  state_->check_sequence(sequence);
  return state_->cache.room(sequence);
}

std::int64_t Engine::weight_bytes() const { return state_->weights->bytes(); }

std::int64_t Engine::cache_bytes() const { return state_->cache_memory.bytes(); }

std::span<const StepInfo> Engine::steps(bool prefill) const {
  return (prefill ? state_->passes.back() : state_->passes.front()).session.executable().steps();
}

void Engine::set_timing(bool on) {
  state_->tell({.kind = RankCommand::Kind::timing,
                .tokens = on});  // ranks that launch one by one and ranks that replay would meet at unlike places
  for (State::Pass& pass : state_->passes) {
    pass.session.executable().set_timing(on);
    pass.session.executable().reset_timers();
  }
  for (const std::unique_ptr<StepPass>& pass : state_->step_passes) {
    pass->session.executable().set_timing(on);
    pass->session.executable().reset_timers();
  }
}

EngineRun Engine::last_run() const {
  const Executable& executable = state_->last_executable();
  return {executable.steps(), executable.last_launches(), executable.last_start()};
}

LoadTimes Engine::load_times() const { return state_->load_times; }

std::int64_t Engine::fallbacks() const {
  std::int64_t count = 0;
  for (const State::Pass& pass : state_->passes) {
    for (const StepInfo& step : pass.session.executable().steps()) count += step.fallbacks;
    if (pass.join)
      for (const StepInfo& step : pass.join->executable().steps()) count += step.fallbacks;
  }
  for (const std::unique_ptr<StepPass>& pass : state_->step_passes)
    for (const StepInfo& step : pass->session.executable().steps()) count += step.fallbacks;
  return count;
}

Executable& Engine::last_executable() { return state_->last_executable(); }
ThreadPool& Engine::pool() { return state_->machine.pool(); }
Context& Engine::context() { return state_->machine; }

}  // namespace cermet
