#include "model/generate_batch.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "model/batch_sampler.hpp"
#include "model/scheduler.hpp"

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Scheduler::Limits limits_of(const Engine& engine) {
  const CacheSize cache = engine.cache_size();
  return {.sequences = cache.sequences,
          .blocks = cache.blocks,
          .block_size = cache.block_size,
          .context = cache.context,
          .pass_tokens = engine.max_batch_tokens(),
          .few_tokens = engine.short_pass_tokens()};
}

struct Running {
  BatchRequest request;
  Generation result;
  Clock::time_point start;
  int sequence = -1;  ///< slot of the cache, while it runs
};

/// A forward pass under way.
struct TokenPass {
  std::vector<Scheduler::Part> parts;
  TensorView logits;
  bool in_rows = false;  ///< nothing is under way: the engine makes steps of it that choose their tokens
};

}  // namespace

struct BatchGenerator::State {
  Engine& engine;
  Events events;
  Scheduler scheduler;
  BatchSampler sampler;
  std::map<std::size_t, Running> requests;  ///< by number; those that are not done
  std::size_t added = 0;
  bool failed = false;  ///< a step threw: parts that the scheduler counts as computed may not be
  std::vector<SequenceTokens> batch;
  std::optional<TokenPass>
      ahead;  ///< enqueued before the host knows the tokens that it begins with; requests may have ended since

  State(Engine& e, Events given)
      : engine(e),
        events(std::move(given)),
        scheduler(limits_of(e)),
        sampler(e.cache_size().sequences, e.config().vocab_size, e.pool(), e.queue()) {
    for (std::int64_t s = 0; s < e.cache_size().sequences; ++s) e.reset(static_cast<int>(s));
  }

  void begin(Running& r, int sequence) {
    r.sequence = sequence;
    r.start = Clock::now();
    sampler.begin(sequence, r.request.options.sampling, r.request.prompt);
  }

  SequenceTokens tokens_of(const Scheduler::Part& part) {
    Running& r = requests.at(part.request);
    if (part.begin == 0) begin(r, part.sequence);
    const auto prompt = static_cast<std::int64_t>(r.request.prompt.size());
    const std::span<const std::int32_t> all =
        part.begin < prompt ? std::span<const std::int32_t>(r.request.prompt) : r.result.ids;
    const std::int64_t from = part.begin < prompt ? part.begin : part.begin - prompt;
    return {part.sequence, all.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(part.count)),
            part.begin < prompt ? prompt : 0};
  }

  void end(std::size_t index, Generation::End why) {
    scheduler.finish(index);
    auto ended = requests.extract(index);
    Running& r = ended.mapped();
    r.result.end = why;
    if (r.result.prefill_seconds > 0) r.result.decode_seconds = seconds_since(r.start) - r.result.prefill_seconds;
    if (r.sequence >= 0) engine.reset(r.sequence);
    if (events.on_done) events.on_done(index, r.result);
  }

  bool is_full(int sequence) const { return engine.length(sequence) == engine.cache_size().context; }

  /// Takes the token that was chosen after a part; `is_full`: there is no room for it.
  void accept(std::size_t index, std::int32_t id, bool is_full) {
    Running& r = requests.at(index);
    if (r.result.prefill_seconds == 0) r.result.prefill_seconds = seconds_since(r.start);
    const GenerateOptions& options = r.request.options;
    if (std::ranges::find(options.stop_ids, id) != options.stop_ids.end()) return end(index, Generation::End::stop);
    r.result.ids.push_back(id);
    if (events.on_token) events.on_token(index, id);
    if (!requests.contains(index)) return;  // the event cancelled it
    if (static_cast<std::int64_t>(r.result.ids.size()) == options.max_new_tokens) end(index, Generation::End::length);
    else if (is_full) end(index, Generation::End::context);
  }

  void require_sound() const {
    require(!failed,
            "batch: expected one whose steps succeeded; one failed, so that tokens of its requests may be missing");
  }

  bool step() {
    require_sound();
    failed = true;  // unless the pass reaches its end
    const bool more = pass();
    failed = false;
    return more;
  }

  /// The next pass, unless it is under way: its parts, none when no request is left, and its logits.
  TokenPass next_pass() {
    if (ahead &&
        std::ranges::any_of(ahead->parts, [&](const Scheduler::Part& part) { return requests.contains(part.request); }))
      return *std::exchange(ahead, std::nullopt);
    ahead.reset();
    const std::span<const Scheduler::Part> planned = scheduler.next_pass();
    TokenPass next{{planned.begin(), planned.end()}, {}};  // the scheduler's own change as requests end
    if (planned.empty()) return next;
    next.in_rows = takes_rows(next.parts);
    if (next.in_rows) return next;
    batch.clear();
    for (const Scheduler::Part& part : planned) batch.push_back(tokens_of(part));
    std::vector<int> sequences;
    for (const SequenceTokens& part : batch) sequences.push_back(part.sequence);
    next.logits = engine.forward(batch, wanted_of(sequences), Engine::Memory::device);
    return next;
  }

  Engine::Logits wanted_of(std::span<const int> sequences) const {
    return sampler.take_largest(sequences) ? Engine::Logits::largest : Engine::Logits::last;
  }

  /// Whether the steps from here on are those of the same sequences, as far as is known.
  bool takes_rows(std::span<const Scheduler::Part> parts) const {
    if (scheduler.waiting() > 0 || scheduler.running() != parts.size()) return false;
    return std::ranges::all_of(parts, [&](const Scheduler::Part& part) {
      const Running& r = requests.at(part.request);
      return part.begin >= std::ssize(r.request.prompt) && chooses(part) && engine.chooses(r.request.options.sampling);
    });
  }

  /// Steps of one launch. Requests that end leave their places empty until it is over.
  void decode_row(std::span<const Scheduler::Part> parts) {
    std::vector<StepSequence> rows;
    std::int64_t most = engine.steps_per_launch(), step = 0;
    for (const Scheduler::Part& part : parts) {
      const Running& r = requests.at(part.request);
      rows.push_back({part.sequence, r.result.ids.back(), r.request.options.sampling, sampler.draws(part.sequence)});
      most = std::min(most, r.request.options.max_new_tokens - std::ssize(r.result.ids));
    }
    engine.decode(rows, most, [&](std::span<const std::int32_t> ids) {
      if (step++ > 0) scheduler.next_pass();  // which has no other choice than to plan this step
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!requests.contains(parts[i].request)) continue;
        sampler.skip(parts[i].sequence, 1);
        accept(parts[i].request, ids[i], parts[i].begin + step == engine.cache_size().context);
      }
      return requests.empty() ? AfterStep::stop : AfterStep::go_on;
    });
  }

  bool chooses(const Scheduler::Part& part) const {
    const auto found = requests.find(part.request);
    return found != requests.end() && part.is_last && found->second.request.options.max_new_tokens > 0;
  }

  /// Whether the next pass takes the tokens of this one, in the same order, whatever they are: no thread waits, and
  /// every request goes on unless its token says stop. Not of engines that share experts, which make one pass a step,
  /// all together.
  bool may_go_ahead(std::span<const Scheduler::Part> parts) const {
    if (engine.shares_experts() || !engine.queue().device || !engine.computes() || scheduler.waiting() > 0 ||
        scheduler.running() != parts.size())
      return false;
    return std::ranges::all_of(parts, [&](const Scheduler::Part& part) {
      if (!chooses(part) || sampler.has_penalty(part.sequence)) return false;
      const Running& r = requests.at(part.request);
      return std::ssize(r.result.ids) + 1 < r.request.options.max_new_tokens && !is_full(part.sequence);
    });
  }

  /// Enqueues the next pass of the same sequences. The scheduler has no other choice than to plan it.
  void go_ahead(std::span<const Scheduler::Part> parts, std::span<const int> sequences) {
    ahead.emplace();
    const std::span<const Scheduler::Part> planned = scheduler.next_pass();
    for (const Scheduler::Part& part : parts)
      ahead->parts.push_back(*std::ranges::find(planned, part.request, &Scheduler::Part::request));
    ahead->logits = engine.forward_chosen(sequences, wanted_of(sequences));
  }

  bool pass() {
    const TokenPass now = next_pass();
    if (now.parts.empty()) return false;
    if (now.in_rows) {
      decode_row(now.parts);
      return true;
    }
    std::vector<int> choosing;
    for (const Scheduler::Part& part : now.parts) choosing.push_back(chooses(part) ? part.sequence : -1);
    std::vector<std::int32_t> ids(now.parts.size());
    if (std::ranges::any_of(choosing, [](int sequence) { return sequence >= 0; })) {
      const bool goes_ahead = may_go_ahead(now.parts);
      sampler.start(now.logits, choosing, goes_ahead ? engine.chosen_ids(std::ssize(choosing)) : nullptr);
      if (goes_ahead) go_ahead(now.parts, choosing);
      std::ranges::copy(sampler.finish(), ids.begin());
      engine.last_executable().check_waits();
    }
    for (std::size_t i = 0; i < now.parts.size(); ++i) {
      if (!requests.contains(now.parts[i].request)) continue;
      if (choosing[i] >= 0) accept(now.parts[i].request, ids[i], !ahead && is_full(choosing[i]));
      else if (now.parts[i].is_last) end(now.parts[i].request, Generation::End::length);
    }
    return true;
  }
};

BatchGenerator::BatchGenerator(Engine& engine, Events events)
    : state_(std::make_unique<State>(engine, std::move(events))) {}
BatchGenerator::~BatchGenerator() = default;

std::size_t BatchGenerator::add(BatchRequest request) {
  State& s = *state_;
  s.require_sound();
  check_sampling(request.options.sampling);
  check_steps(s.engine, request.options.sampling);
  for (const std::int32_t id : request.prompt)
    require(id >= 0 && id < s.engine.config().vocab_size, "token id: expected 0 to {}, found {}",
            s.engine.config().vocab_size - 1, id);
  std::map<std::size_t, Running> made;  // all memory is there before the scheduler has the request
  Running& running = made[s.added];
  running.result.prompt_tokens = std::ssize(request.prompt);
  running.request = std::move(request);
  s.scheduler.add(s.added, running.result.prompt_tokens, running.request.options.max_new_tokens);
  s.requests.merge(made);
  return s.added++;
}

bool BatchGenerator::step() { return state_->step(); }

void BatchGenerator::cancel(std::size_t request) {
  require(state_->requests.contains(request), "request {}: expected one that is not done, found none", request);
  state_->end(request, Generation::End::cancelled);
}

void BatchGenerator::cancel() {
  while (!state_->requests.empty()) cancel(state_->requests.begin()->first);
}

std::size_t BatchGenerator::pending() const { return state_->requests.size(); }

}  // namespace cermet
