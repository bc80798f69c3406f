// A forward pass: checked, its inputs filled, and run.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "model/decoder.hpp"
#include "model/engine_choices.hpp"
#include "model/engine_state.hpp"

namespace cermet {

/// Throws before anything changes: a refused batch leaves every sequence as it was.
std::int64_t Engine::State::check_batch(std::span<const SequenceTokens> batch) const {
  require(!batch.empty() && static_cast<std::int64_t>(batch.size()) <= options.max_sequences,
          "batch: expected 1 to {} sequences, found {}", options.max_sequences, batch.size());
  std::int64_t tokens = 0, new_pages = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    check_sequence(batch[i].sequence);
    for (std::size_t j = 0; j < i; ++j)
      require(batch[j].sequence != batch[i].sequence, "batch: expected each sequence once, found {} twice",
              batch[i].sequence);
    const auto count = static_cast<std::int64_t>(batch[i].tokens.size());
    require(count > 0, "sequence {}: expected at least one token, found none", batch[i].sequence);
    require(batch[i].length == 0 || batch[i].length >= cache.length(batch[i].sequence) + count,
            "sequence {}: expected a length of at least {}, found {}", batch[i].sequence,
            cache.length(batch[i].sequence) + count, batch[i].length);
    require(count <= cache.room(batch[i].sequence),
            "sequence {}: expected at most {} more tokens (context of {}), found {}", batch[i].sequence,
            cache.room(batch[i].sequence), context, count);
    for (const std::int32_t id : batch[i].tokens)
      require(id >= 0 && id < config().vocab_size, "token id: expected 0 to {}, found {}", config().vocab_size - 1, id);
    new_pages += div_up(cache.length(batch[i].sequence) + count, engine::block_size) -
                 static_cast<std::int64_t>(cache.pages(batch[i].sequence).size());
    tokens += count;
  }
  require(tokens <= options.max_batch_tokens, "batch: expected at most {} tokens, found {}", options.max_batch_tokens,
          tokens);
  require(new_pages <= cache.free_pages(), "batch: expected room for {} more cache pages, found {}", new_pages,
          cache.free_pages());
  return tokens;
}

void Engine::State::check_sequence(int sequence) const {
  require(sequence >= 0 && sequence < options.max_sequences, "sequence: expected 0 to {}, found {}",
          options.max_sequences - 1, sequence);
}

/// Appends the batch to the cache's page tables and fills the graph's index inputs.
void Engine::State::fill_inputs(std::span<const SequenceTokens> batch, Logits which, PassInputs& in) {
  in.begin();
  rotary.begin_pass();
  std::size_t t = 0, rows = 0;
  for (std::size_t b = 0; b < batch.size(); ++b) {
    const SequenceTokens& part = batch[b];
    const std::int64_t start = cache.length(part.sequence);
    cache.append(part.sequence, static_cast<std::int64_t>(part.tokens.size()));
    const std::int64_t length = std::max(part.length, cache.length(part.sequence));
    in.query_starts()[b] = static_cast<std::int32_t>(t);
    for (std::size_t i = 0; i < part.tokens.size(); ++i, ++t) {
      const std::int64_t position = start + static_cast<std::int64_t>(i);
      in.ids()[t] = part.tokens[i];
      in.positions()[t] = rotary.row(position, length);
      in.slots()[t] = cache.slot(part.sequence, position);
      if (which == Logits::all || i + 1 == part.tokens.size()) in.logit_rows()[rows++] = static_cast<std::int32_t>(t);
    }
    in.context_lens()[b] = static_cast<std::int32_t>(cache.length(part.sequence));
    std::ranges::copy(cache.pages(part.sequence), in.block_table(static_cast<std::int64_t>(b)).begin());
  }
  in.query_starts()[batch.size()] = static_cast<std::int32_t>(t);
  if (rotary.filled() > 0 && stream()) upload_rotary(rotary.positions(), rotary.filled());
}

Engine::State::Pass& Engine::State::pass_for(std::int64_t tokens) {
  return *std::ranges::find_if(passes, [&](const Pass& p) { return tokens <= p.tokens; });
}

/// What all ranks that share the experts compute in this pass: all run the same executable, whose operands have the
/// same types. Where they gather rows, their passes have one size, too: that of the largest in each respect, with a
/// sequence of padding wherever a rank has fewer tokens. Gathered operands are then alike; no count is read on the
/// host; and all ranks capture and replay alike, one graph for each size: of decoding, for each number of sequences of
/// the rank with most, as one engine alone has them. What the others compute for nothing they would otherwise wait for.
PassSize Engine::State::size_for_all(const PassSize& own) {
  if (!beside) return own;
  std::vector<PassSize> sizes;
  PassSize all;
  for (const std::string& text : beside->gather_text({reinterpret_cast<const char*>(&own), sizeof own})) {
    CERMET_ASSERT(text.size() == sizeof own);
    std::memcpy(&sizes.emplace_back(), text.data(), sizeof own);
    all.tokens = std::max(all.tokens, sizes.back().tokens);
    all.rows = std::max(all.rows, sizes.back().rows);
  }
  for (const PassSize& each : sizes)
    all.sequences = std::max(all.sequences, each.sequences + (each.tokens < all.tokens ? 1 : 0));
  return all;
}

/// `own`: of the batch; `all`: of this pass of all ranks. Returns what Engine::forward() does.
TensorView Engine::State::run_pass(std::span<const SequenceTokens> batch, Logits which, const PassSize& own,
                                   const PassSize& all, Memory memory, bool chosen) {
  Pass& pass = pass_for(all.tokens);
  PassSize size = shard().gathers_rows() ? all : own;
  if (size.tokens % pass.shares != 0) {  // with a sequence of padding
    size.tokens = round_up(size.tokens, pass.shares);
    ++size.sequences;
  }
  fill_inputs(batch, which, *pass.inputs);
  pass.inputs->pad(own, size);
  pass.inputs->upload(size.sequences, !chosen);
  SymbolValues counts;
  counts.set(symbols.tokens, size.tokens / pass.shares);
  counts.set(symbols.sequences, size.sequences);
  counts.set(symbols.rows, size.rows);
  last_pass = static_cast<std::size_t>(&pass - passes.data());
  last_step = nullptr;
  pass.session.run(counts);
  pass.inputs->pass_enqueued();
  if (!machine.computes()) return {null_logits.data(), DType::f32, {own.rows, config().vocab_size}};
  const bool joins = pass.join && which != Logits::largest;
  if (joins) {
    TensorView part = pass.session.output(decoder_io::logits_part);
    part.shape[0] = most_logit_rows(pass.tokens);  // the same memory for every number of rows
    pass.join->executable().bind(decoder_io::logits_part, part);
    pass.join->run(counts);
  }
  Session& last = joins ? *pass.join : pass.session;
  const char* const name = pass.join && !joins ? decoder_io::largest : decoder_io::logits;
  TensorView result = memory == Memory::device ? last.output(name) : last.host_output(name);
  result.shape[0] = own.rows;
  if (joins && memory == Memory::host) pass.session.executable().check_waits();
  if (memory == Memory::host && device_ranks) device_ranks->check();  // that none gave up meanwhile
  return result;
}

bool Engine::State::forward_nothing() {
  CERMET_ASSERT(beside != nullptr);
  const PassSize all = size_for_all({});
  if (all.tokens == 0) return false;
  run_pass({}, Logits::last, {}, all, Memory::device, false);
  return true;
}

/// With `chosen`, the ids of the batch, one of each sequence, lie where the pass reads them.
TensorView Engine::State::forward(std::span<const SequenceTokens> batch, Logits which, Memory memory, bool chosen) {
  CERMET_ASSERT(!chosen || !beside);  // they would lie where the pass of this rank's own tokens reads them
  require(which != Logits::all || options.all_logits,
          "logits: expected those of last tokens, for which alone the engine was loaded (all_logits), found all");
  const std::int64_t tokens = check_batch(batch), sequences = std::ssize(batch);
  using Kind = RankCommand::Kind;
  tell({.kind = chosen ? Kind::forward_chosen : Kind::forward,
        .tokens = static_cast<std::int64_t>(which),
        .batch = batch});
  const PassSize own{tokens, sequences, which == Logits::all ? tokens : sequences};
  return run_pass(batch, which, own, size_for_all(own), memory, chosen);
}

}  // namespace cermet
