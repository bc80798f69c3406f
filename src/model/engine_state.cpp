#include "model/engine_state.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <thread>

#include "base/log.hpp"
#include "comm/device_communicator.hpp"
#include "model/decoder.hpp"
#include "model/engine_choices.hpp"
#include "model/parallel/shard_reader.hpp"
#include "model/weight_loader.hpp"

namespace cermet {
namespace {

std::int64_t bytes_of(const TensorView& view) { return dense_bytes(view.dtype, view.shape); }

/// Compiles the programs of all passes at once, while weights are read. What does not compile is reported by the pass
/// that needs it.
std::jthread compile_ahead(std::vector<cuda::Program> programs, ProgramStore* store) {
  if (programs.empty()) return {};
  return std::jthread([programs = std::move(programs), store] {
    try {
      store->prepare(programs);
    } catch (const std::exception& error) {
      log().debug("{}", error.what());
    }
  });
}

}  // namespace

Engine::State::State(Checkpoint opened, const EngineOptions& given, DType stored, std::optional<Context> on,
                     std::shared_ptr<Ranks> with, std::shared_ptr<Communicator> others)
    : options(given),
      checkpoint(std::move(opened)),
      ranks(std::move(with)),
      beside(std::move(others)),
      quantization(engine::quantization_for(given, checkpoint)),
      operands(engine::asked_type(given, stored)),
      cached(engine::cache_type(given, operands)),
      weight_dtype(engine::weight_type(given, stored)),
      context(engine::context_for(given, checkpoint.config())),
      pages(context / engine::block_size + given.max_sequences - 1),
      machine(on ? std::move(*on) : Context({given.device, given.threads})),
      device_ranks((ranks || beside) && stream()
                       ? comm::make_device_communicator(ranks ? ranks->communicator() : *beside, machine.device())
                       : nullptr),
      cache(pages, engine::block_size, given.max_sequences, context / engine::block_size),
      cache_memory(machine.device(), sharded(checkpoint.config().decoder, shard()), cached, pages, engine::block_size),
      rotary(checkpoint.config(), given.rope_frequencies == RopeFrequencies::stored ? stored : DType::f32, context,
             given.max_batch_tokens) {
  machine.device().set_compact_weights(given.compact_weights);
  if (stream()) {
    rotary_memory = {machine.device().allocate(bytes_of(rotary.cos())),
                     machine.device().allocate(bytes_of(rotary.sin()))};
    upload_rotary(0, rotary.rows());
  }
  compile_graphs();
  options.on_load = nullptr;  // what it refers to may end
}

Engine::State::~State() {
  if (ranks) ranks->end();
}

/// Sizes that kernels or operands differ for: a single token, for which weights stream once; few tokens, on the CPU as
/// many as decode together; on a GPU as many as decode together where those are more; and as many as were asked for,
/// before which a GPU has a pass of the usual size, because kernels for many tokens are slower for a part of them. A
/// CPU that may decode several sequences has no pass for one: their results would depend on how many are left.
void Engine::State::compile_graphs() {
  std::vector<std::int64_t> sizes{std::max(engine::few_tokens, stream() ? 0 : options.max_sequences),
                                  options.max_batch_tokens};
  if (stream() && options.max_sequences > engine::few_tokens)
    sizes.insert(sizes.end() - 1,
                 static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(options.max_sequences))));
  if (stream() || options.max_sequences == 1) sizes.insert(sizes.begin(), 1);
  if (stream() && options.max_batch_tokens > engine::usual_tokens && sizes.end()[-2] < engine::usual_tokens)
    sizes.insert(sizes.end() - 1, engine::usual_tokens);
  for (std::int64_t& size : sizes) size = std::min(size, options.max_batch_tokens);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<StartedPass> started;
  std::vector<cuda::Program> programs;
  for (const std::int64_t size : sizes) {
    started.push_back(start_pass(size, engine::operand_type(machine.device(), size, operands, weight_dtype)));
    std::ranges::move(started.back().session.programs(), std::back_inserter(programs));
    if (started.back().join) std::ranges::move(started.back().join->programs(), std::back_inserter(programs));
  }
  const std::jthread compiling = compile_ahead(std::move(programs), machine.queue().programs);
  for (StartedPass& each : started) add_pass(std::move(each));
  if (stream()) stream()->synchronize();
  if (!machine.computes())
    null_logits.assign(static_cast<std::size_t>(most_logit_rows(options.max_batch_tokens) * config().vocab_size), 0.0f);
}

DecoderGraph Engine::State::make_graph(std::int64_t tokens, DType operand_dtype, bool every_row) const {
  const DecoderState sizes{.blocks = pages,
                           .block_size = engine::block_size,
                           .pages_per_sequence = context / engine::block_size,
                           .table_positions = rotary.rows(),
                           .every_row = every_row,
                           .parts_of_logits = has_parts_of_logits(tokens),
                           .shares_rows = shares_of_rows(tokens) > 1,
                           .most_tokens = tokens};
  const DecoderTypes types{weight_dtype, operand_dtype, cached,
                           engine::query_type(machine.device(), operand_dtype, cached),
                           engine::sum_type(machine.device(), tokens, operand_dtype)};
  return build_decoder(config(), types, quantization, sizes, shard());
}

std::int64_t Engine::State::shares_of_rows(std::int64_t tokens) const {
  const ModelShard own = shard();
  return ranks && options.share_rows.value_or(stream() != nullptr) && own.all() == own.ranks &&
                 tokens > engine::long_tokens
             ? own.ranks
             : 1;
}

bool Engine::State::has_parts_of_logits(std::int64_t tokens) const {
  const ModelShard own = shard();
  constexpr std::int64_t exact_ids = std::int64_t{1} << 24;  // as float32, as ranks exchange them
  return own.ranks > 1 && tokens > 1 && config().vocab_size <= exact_ids &&
         (own.ranks - 1) * vocabulary_part(config().vocab_size, own) < config().vocab_size;
}

SessionOptions Engine::State::session_options(std::int64_t tokens, std::int64_t shares) {
  SessionOptions made;
  made.maximum.set(symbols.tokens, tokens / shares);
  made.maximum.set(symbols.rows, most_logit_rows(tokens));
  made.maximum.set(symbols.sequences, most_sequences(tokens));
  made.fusion = options.fusion;
  if (tokens > engine::few_tokens && options.fusion.super_kernel.select == "decode") made.fusion.super_kernel = {};
  if (ranks) made.groups = {{model_group, device_ranks ? device_ranks.get() : &ranks->communicator()}};
  if (beside) made.groups = {{experts_group, device_ranks ? device_ranks.get() : beside.get()}};
  return made;
}

Engine::State::StartedPass Engine::State::start_pass(std::int64_t tokens, DType operand_dtype) {
  DecoderGraph decoder = make_graph(tokens, operand_dtype, tokens == 1);
  if (!weights)
    weights.emplace(
        make_weight_loader(
            ranks ? sharded_reader(reader_of(checkpoint), config().decoder, shard()) : reader_of(checkpoint),
            std::move(decoder.sources), [this](std::int64_t bytes) { report_loaded(bytes); }, &machine.pool()),
        machine.pool(), machine.queue());
  const std::int64_t shares = shares_of_rows(tokens), room = round_up(tokens, shares);
  std::optional<StartedSession> join;
  if (has_parts_of_logits(tokens)) {
    SessionOptions how = session_options(room, shares);
    how.fusion = {};
    join.emplace(build_joined_logits(config(), shard()), machine, *weights, how);
  }
  return {room, most_sequences(tokens), shares,
          StartedSession(decoder.graph, machine, *weights, session_options(room, shares)), std::move(join)};
}

void Engine::State::add_pass(StartedPass started) {
  std::vector<CompileStep> report;
  passes.push_back(
      {started.tokens, started.sequences, started.shares,
       std::make_unique<PassInputs>(started.tokens, started.sequences, context / engine::block_size, machine.queue()),
       Session(std::move(started.session), &report),
       started.join ? std::make_unique<Session>(std::move(*started.join), &report) : nullptr});
  for (const CompileStep& step : report) {
    if (step.kind == PassKind::programs) load_times.kernels += step.seconds;
    if (step.kind == PassKind::weights) load_times.weights += step.seconds;
  }
  passes.back().inputs->bind(passes.back().session.executable());
  bind_state(passes.back().session.executable());
}

void Engine::State::report_loaded(std::int64_t bytes) {
  loaded_bytes += bytes;
  if (options.on_load) options.on_load(std::min(loaded_bytes, checkpoint.total_bytes()), checkpoint.total_bytes());
}

void Engine::State::upload_rotary(std::int64_t first, std::int64_t count) {
  const std::int64_t row = bytes_of(rotary.cos()) / rotary.rows();
  const auto upload = [&](DeviceBuffer& memory, const TensorView& table) {
    stream()->upload(memory.data() + first * row, static_cast<const std::byte*>(table.data) + first * row, count * row);
  };
  upload(rotary_memory[0], rotary.cos());
  upload(rotary_memory[1], rotary.sin());
}

void Engine::State::bind_state(Executable& executable) {
  TensorView cos = rotary.cos(), sin = rotary.sin();
  if (stream()) {
    cos.data = rotary_memory[0].data();
    sin.data = rotary_memory[1].data();
  }
  executable.bind(decoder_io::rope_cos, cos);
  executable.bind(decoder_io::rope_sin, sin);
  cache_memory.bind(executable);
}

}  // namespace cermet
