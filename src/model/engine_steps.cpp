// Decoding steps that choose their own tokens: enqueued in rows on a device, computed in rows on the CPU.
#include <algorithm>
#include <chrono>
#include <thread>

#include "model/decoder_choice.hpp"
#include "model/engine_choices.hpp"
#include "model/engine_state.hpp"

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;

/// Rows of tokens that the host and the device share: of two launches that are under way, twice.
std::int64_t rows_of(const EngineOptions& options) { return 4 * options.steps_per_launch; }

}  // namespace

/// The pass that forward() would take for so many sequences, with a choice after it.
StepPass& Engine::State::step_pass(std::int64_t sequences, bool greedy) {
  const Pass& plain = pass_for(sequences);
  const auto found = std::ranges::find_if(
      step_passes, [&](const auto& pass) { return pass->tokens == plain.tokens && pass->greedy == greedy; });
  if (found != step_passes.end()) return **found;
  DecoderGraph decoder =
      make_graph(plain.tokens, engine::operand_type(machine.device(), plain.tokens, operands, weight_dtype), true);
  add_choice(decoder.graph, greedy, engine::block_size, rows_of(options), plain.sequences);
  SessionOptions how = session_options(plain.tokens, 1);
  how.fusion.records = nullptr;
  auto made = std::make_unique<StepPass>(plain.tokens, plain.sequences, context / engine::block_size, rows_of(options),
                                         greedy, std::move(decoder.graph), machine, *weights, how);
  bind_state(made->session.executable());
  if (stream()) stream()->synchronize();
  return *step_passes.emplace_back(std::move(made));
}

/// A call of decode().
struct Engine::State::StepRow {
  State& s;
  std::span<const StepSequence> sequences;
  std::int64_t most;
  StepPass& pass;
  std::vector<std::int64_t> start = {};  ///< tokens of each sequence before
  std::vector<std::int32_t> ids = {};
  std::int64_t launched = 0, heard = 0;

  StepRow(State& state, std::span<const StepSequence> given, std::int64_t steps, StepPass& step)
      : s(state), sequences(given), most(steps), pass(step) {
    for (const StepSequence& each : sequences) start.push_back(s.cache.length(each.sequence));
    ids.resize(sequences.size());
  }
  StepRow(const StepRow&) = delete;
  StepRow& operator=(const StepRow&) = delete;
  /// Takes back tokens that were never returned, and pages held for a step that did not come.
  ~StepRow() {
    for (std::size_t b = 0; b < sequences.size(); ++b)
      if (s.cache.length(sequences[b].sequence) == start[b] + launched)
        s.cache.drop(sequences[b].sequence, launched - heard);
  }

  /// How many steps the next launch takes: a whole row, or one where not as many are wanted or have room.
  std::int64_t next_count() const {
    std::int64_t room = most - launched;
    for (const StepSequence& each : sequences) room = std::min(room, s.cache.room(each.sequence));
    const std::int64_t row = s.options.steps_per_launch;
    return room < 1 ? 0 : room >= row ? row : 1;
  }

  /// Pages of `count` more tokens, and of the one after them, whose slot the last step computes. Whether tables have
  /// changed.
  bool extend(std::int64_t count) {
    std::size_t before = 0, after = 0;
    for (const StepSequence& each : sequences) before += s.cache.pages(each.sequence).size();
    for (const StepSequence& each : sequences) s.cache.append(each.sequence, count);
    for (const StepSequence& each : sequences) s.cache.reserve(each.sequence);
    for (const StepSequence& each : sequences) after += s.cache.pages(each.sequence).size();
    return after != before;
  }

  void fill_tables() {
    for (std::size_t b = 0; b < sequences.size(); ++b)
      std::ranges::copy(s.cache.pages(sequences[b].sequence),
                        pass.inputs.block_table(static_cast<std::int64_t>(b)).begin());
  }

  void fill() {
    PassInputs& in = pass.inputs;
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      const auto row = static_cast<std::int32_t>(b);
      const std::int64_t position = start[b];
      in.ids()[b] = sequences[b].id;
      in.positions()[b] = static_cast<std::int32_t>(position);
      in.slots()[b] = s.cache.slot(sequences[b].sequence, position);
      in.logit_rows()[b] = in.query_starts()[b] = row;
      in.context_lens()[b] = static_cast<std::int32_t>(position + 1);
    }
    in.query_starts()[sequences.size()] = static_cast<std::int32_t>(sequences.size());
    fill_tables();
  }

  /// Steps of the next launch, whose inputs are where it reads them; 0: there is none.
  std::int64_t prepare() {
    const auto rows = static_cast<std::int64_t>(sequences.size());
    const bool is_first = launched == 0;
    // The last step computed its slot with the tables that it had.
    if (!is_first &&
        !std::ranges::all_of(sequences, [&](const StepSequence& each) { return s.cache.holds_next(each.sequence); }))
      return 0;
    const std::int64_t count = next_count();
    if (count == 0) return 0;
    if (is_first && s.stream() && s.machine.computes())
      s.stream()->synchronize_event(*pass.ended);  // its numbers begin anew
    pass.inputs.begin();
    const bool grown = extend(count);
    if (is_first) {
      fill();
      if (s.machine.computes()) pass.choice.begin(sequences);
      pass.inputs.upload(rows);
    } else if (grown) {
      fill_tables();
      pass.inputs.upload_tables(rows);
    }
    launched += count;
    return count;
  }

  void run(std::int64_t count, FunctionRef<bool(std::int64_t)> after) {
    const auto rows = static_cast<std::int64_t>(sequences.size());
    SymbolValues counts;
    counts.set(s.symbols.tokens, rows);
    counts.set(s.symbols.sequences, rows);
    counts.set(s.symbols.rows, rows);
    s.last_step = &pass;
    pass.session.executable().run_row(counts, count, after);
    pass.inputs.pass_enqueued();
    if (s.stream()) s.stream()->record(*pass.ended);
  }

  /// Waits for the tokens of the next step on a device: they appear while it goes on. Those of the last one under way
  /// come with an end that can be waited for, after which it is known whether all went well.
  void wait() {
    if (!s.machine.computes()) return;
    const auto rows = static_cast<std::int64_t>(sequences.size());
    const auto since = Clock::now();
    constexpr std::chrono::microseconds spin(500), patience(1'000'000);
    bool is_late = false;
    while (!is_late && !pass.choice.are_there(heard, rows)) {
      const auto waited = Clock::now() - since;
      is_late = waited > patience;
      if (waited > spin) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (is_late || heard + 1 == launched) s.stream()->synchronize_event(*pass.ended);
    pass.session.executable().check_waits();
    if (!pass.choice.are_there(heard, rows))
      fail(Status::internal, "decode: expected tokens of step {}, found none when it had ended", heard);
  }

  AfterStep hear(FunctionRef<AfterStep(std::span<const std::int32_t>)> after) {
    if (s.machine.computes()) pass.choice.take(heard, ids);
    ++heard;
    return after(ids);
  }
};

std::int64_t Engine::State::decode(std::span<const StepSequence> sequences, std::int64_t most,
                                   FunctionRef<AfterStep(std::span<const std::int32_t> ids)> after) {
  CERMET_ASSERT(chooses());
  std::vector<SequenceTokens> first;
  for (const StepSequence& each : sequences) first.push_back({each.sequence, {&each.id, 1}});
  if (most < 1) return 0;
  check_batch(first);
  const bool greedy =
      std::ranges::all_of(sequences, [](const StepSequence& each) { return each.sampling.is_greedy(); });
  StepRow row(*this, sequences, most, step_pass(static_cast<std::int64_t>(sequences.size()), greedy));
  if (!stream()) {
    AfterStep next = AfterStep::go_on;
    while (next == AfterStep::go_on) {
      const std::int64_t count = row.prepare();
      if (count == 0) break;
      row.run(count, [&](std::int64_t) { return (next = row.hear(after)) != AfterStep::stop; });
    }
    return row.heard;
  }
  const auto launch = [&] {
    const std::int64_t count = row.prepare();
    if (count > 0) row.run(count, [](std::int64_t) { return true; });
    return count > 0;
  };
  bool more = launch();
  for (std::int64_t end = row.launched; row.heard < row.launched; end = row.launched) {
    if (more) more = launch();  // the device has the next steps before it has ended these
    while (row.heard < end) {
      row.wait();
      const AfterStep next = row.hear(after);
      if (next == AfterStep::stop) return row.heard;
      more = more && next == AfterStep::go_on;
    }
  }
  return row.heard;
}

}  // namespace cermet
