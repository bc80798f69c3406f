#include "model/engine.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "model/checkpoint.hpp"
#include "model/decoder.hpp"
#include "model/engine_options.hpp"
#include "model/paged_cache.hpp"
#include "model/pass_inputs.hpp"
#include "model/quantization_check.hpp"
#include "model/rotary.hpp"
#include "model/weight_loader.hpp"

namespace cermet {
namespace {

constexpr std::int64_t block_size = 16;         // tokens of a cache page
constexpr std::int64_t default_context = 4096;  // tokens, where the caller does not say
constexpr std::int64_t few_tokens = 32;         // kernels are chosen apart for passes of up to this many

DType asked_type(const EngineOptions& options, DType stored) {
  const DType dtype = options.dtype.value_or(stored);
  require(dtypes::real.contains(dtype), "dtype: expected {}, found {}", dtypes::real.to_string(), name_of(dtype));
  return dtype;
}

/// What the left operands of products are rounded to in passes of up to `tokens` tokens, where `asked` was asked for. A single token's stay float32: while
/// weights stream, that costs nothing. On the CPU there are instructions for bf16 beside weights of bf16 and for no other pair of 16 bits. Beside float32
/// weights the tensor cores have no product, so that rounding buys something only where there are many tokens.
DType operand_type(const Device& device, std::int64_t tokens, DType asked, DType weights) {
  if (tokens == 1) return DType::f32;
  if (!device.target()) return asked == DType::bf16 && weights == DType::bf16 ? DType::bf16 : DType::f32;
  return weights == DType::f32 && tokens <= few_tokens ? DType::f32 : asked;
}

/// The type of rotated queries on a GPU: the cache's, so that they are multiplied directly and not as two parts. A
/// single token's stay float32 with a bf16 cache, where the second part is free; with f16 no fast kernel takes them.
DType query_type(const Device& device, DType operands, DType cached) {
  return device.target() && (operands == cached || cached == DType::f16) ? cached : DType::f32;
}

/// Type of the unquantized weights. They are never rounded unless the caller asks: 16-bit ones are widened exactly
/// where GEMMs are float32.
DType weight_type(const EngineOptions& options, DType stored) {
  const DType dtype = options.weights.value_or(stored);
  const DTypeSet allowed = dtypes::real | load_quantized_types;
  require(allowed.contains(dtype), "weights: expected {}, found {}", allowed.to_string(), name_of(dtype));
  return load_quantized_types.contains(dtype) ? stored : dtype;
}

Quantization quantization_for(const EngineOptions& options, const Checkpoint& checkpoint) {
  if (!options.weights || !load_quantized_types.contains(*options.weights)) return checked_quantization(checkpoint);
  require(!checkpoint.quantization().stored(), "weights: expected none or a real type for a checkpoint that is quantized, found {}", name_of(*options.weights));
  const LinearScheme::Weight weight = *options.weights == DType::i8 ? LinearScheme::Weight::int8 : LinearScheme::Weight::fp8;
  return quantize_projections(checkpoint.config(), {weight, LinearScheme::Input::dynamic});
}

DType cache_type(const EngineOptions& options, DType operands) {
  const DType dtype = options.kv_cache.value_or(operands);
  require(!options.kv_cache || load_quantized_types.contains(dtype), "kv_cache: expected {}, found {}", load_quantized_types.to_string(), name_of(dtype));
  return dtype;
}

std::int64_t context_for(const EngineOptions& options, const ModelConfig& config) {
  require(options.max_context >= 0, "max_context: expected a non-negative number of tokens, found {}", options.max_context);
  const std::int64_t wanted = options.max_context > 0 ? options.max_context : std::min(config.max_position_embeddings, default_context);
  require(wanted <= (std::int64_t{1} << 30), "max_context: expected at most {} tokens, found {}", std::int64_t{1} << 30, wanted);
  if (wanted > config.max_position_embeddings * options.max_sequences && config.rope.scaling != RopeScaling::dynamic)
    log().warn("context of {} tokens: the model was made for {}; text beyond that may be poor", wanted, config.max_position_embeddings);
  return round_up(wanted, block_size);
}

void check_counts(const EngineOptions& options) {
  require(options.max_sequences >= 1 && options.max_sequences <= 65536, "max_sequences: expected 1 to 65536, found {}", options.max_sequences);
  require(options.max_batch_tokens >= 1 && options.max_batch_tokens <= 1 << 20, "max_batch_tokens: expected 1 to {}, found {}", 1 << 20,
          options.max_batch_tokens);
}

}  // namespace

struct Engine::State {
  EngineOptions options;
  Checkpoint checkpoint;
  Quantization quantization;
  DType operands, cached;  ///< types of matrix operands, of keys and values
  /// Looked up once: every token needs them.
  const struct { Symbol tokens = Symbol("T"), sequences = Symbol("B"), rows = Symbol("R"); } symbols;
  std::int64_t context, pages;
  ThreadPool pool;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;  ///< of a device with a target; null for the CPU
  std::optional<ProgramStore> programs;
  DeviceQueue queue;
  std::optional<WeightStore> weights;
  /// The model compiled for passes of up to this many tokens, fewest first.
  struct Pass {
    std::int64_t tokens, sequences;
    std::unique_ptr<PassInputs> inputs;
    Executable executable;
  };
  std::vector<Pass> passes;
  std::size_t last_pass = 0;
  LoadTimes load_times;
  PagedCache cache;
  std::vector<DeviceBuffer> cache_memory, cache_scales;  ///< keys and values of each layer
  std::optional<RotaryTables> rotary;
  std::array<DeviceBuffer, 2> rotary_memory;  ///< cosines and sines on a device
  DeviceBuffer host_logits;
  std::vector<float> null_logits;  ///< returned by a device that computes nothing
  std::int64_t loaded_bytes = 0;

  State(Checkpoint opened, const EngineOptions& given, DType stored)
      : options(given),
        checkpoint(std::move(opened)),
        quantization(quantization_for(given, checkpoint)),
        operands(asked_type(given, stored)),
        cached(cache_type(given, operands)),
        context(context_for(given, checkpoint.config())),
        pages(context / block_size + given.max_sequences - 1),
        pool(given.threads),
        device(make_device(given.device)),
        stream(device->target() ? device->make_stream() : nullptr),
        cache(pages, block_size, given.max_sequences, context / block_size) {
    allocate_cache();  // first: it is what a context that is too long asks too much of
    rotary.emplace(checkpoint.config(), given.rope_frequencies == RopeFrequencies::stored ? stored : DType::f32, context);
    if (stream) {
      programs.emplace(*device);
      queue = {device.get(), stream.get(), &*programs};
      rotary_memory = {device->allocate(dense_bytes_of(rotary->cos())), device->allocate(dense_bytes_of(rotary->sin()))};
      upload_rotary();
    }
    compile_graphs(weight_type(options, stored));
  }

  const ModelConfig& config() const { return checkpoint.config(); }

  /// Sizes that kernels or operands differ for: a single token, for which weights stream once; few tokens, on the CPU as many as decode together; and as
  /// many as were asked for. A CPU that may decode several sequences has no pass for one: their results would depend on how many are left.
  void compile_graphs(DType weight_dtype) {
    std::vector<std::int64_t> sizes{std::max(few_tokens, stream ? 0 : options.max_sequences), options.max_batch_tokens};
    if (stream || options.max_sequences == 1) sizes.insert(sizes.begin(), 1);
    for (std::int64_t& size : sizes) size = std::min(size, options.max_batch_tokens);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::int64_t size : sizes) add_pass(size, operand_type(*device, size, operands, weight_dtype), weight_dtype);
    if (stream) stream->synchronize();
    if (!device->computes()) null_logits.assign(static_cast<std::size_t>(options.max_batch_tokens * config().vocab_size), 0.0f);
  }

  void add_pass(std::int64_t tokens, DType operand_dtype, DType weight_dtype) {
    const DecoderState sizes{pages, block_size, context / block_size, context};
    DecoderGraph decoder = build_decoder(config(), {weight_dtype, operand_dtype, cached, query_type(*device, operand_dtype, cached)}, quantization, sizes);
    if (!weights)
      weights.emplace(make_weight_loader(
                          reader_of(checkpoint), std::move(decoder.sources), [this](std::int64_t bytes) { report_loaded(bytes); }, &pool),
                      pool, queue);
    const std::int64_t sequences = std::min(options.max_sequences, tokens);
    CompileOptions compile_options;
    compile_options.queue = queue;
    compile_options.maximum.set(symbols.tokens, tokens);
    compile_options.maximum.set(symbols.rows, tokens);
    compile_options.maximum.set(symbols.sequences, sequences);
    std::vector<CompileStep> report;
    passes.push_back({tokens, sequences, std::make_unique<PassInputs>(tokens, sequences, context / block_size, queue),
                      compile(std::move(decoder.graph), *device, *weights, pool, compile_options, &report)});
    for (const CompileStep& step : report) {
      if (step.name == "compile-kernels") load_times.kernels += step.seconds;
      if (step.name == "load-weights") load_times.weights += step.seconds;
    }
    passes.back().inputs->bind(passes.back().executable);
    bind_state(passes.back().executable);
  }

  void report_loaded(std::int64_t bytes) {
    loaded_bytes += bytes;
    if (options.on_load) options.on_load(std::min(loaded_bytes, checkpoint.total_bytes()), checkpoint.total_bytes());
  }

  Shape cache_shape() const { return {pages, config().kv_heads, block_size, config().head_dim}; }

  Shape cache_scales_shape() const { return {pages, config().kv_heads, block_size}; }

  void allocate_cache() {
    const std::int64_t bytes = cache_shape().elements() * static_cast<std::int64_t>(size_of(cached));
    for (std::int64_t i = 0; i < 2 * config().layers; ++i) {
      cache_memory.push_back(device->allocate(bytes));
      if (cached == DType::i8) cache_scales.push_back(device->allocate(dense_bytes(DType::f32, cache_scales_shape())));
    }
  }

  static std::int64_t dense_bytes_of(const TensorView& view) { return dense_bytes(view.dtype, view.shape); }

  void upload_rotary() {
    stream->upload(rotary_memory[0].data(), rotary->cos().data, rotary_memory[0].size());
    stream->upload(rotary_memory[1].data(), rotary->sin().data, rotary_memory[1].size());
  }

  void bind_state(Executable& executable) {
    TensorView cos = rotary->cos(), sin = rotary->sin();
    if (stream) {
      cos.data = rotary_memory[0].data();
      sin.data = rotary_memory[1].data();
    }
    executable.bind(decoder_io::rope_cos, cos);
    executable.bind(decoder_io::rope_sin, sin);
    for (std::int64_t layer = 0; layer < config().layers; ++layer) {
      const auto memory = [&](std::int64_t i) { return TensorView(cache_memory[static_cast<std::size_t>(2 * layer + i)].data(), cached, cache_shape()); };
      executable.bind(decoder_io::key_cache(layer), memory(0));
      executable.bind(decoder_io::value_cache(layer), memory(1));
      if (cached != DType::i8) continue;
      const auto scales = [&](std::int64_t i) {
        return TensorView(cache_scales[static_cast<std::size_t>(2 * layer + i)].data(), DType::f32, cache_scales_shape());
      };
      executable.bind(decoder_io::key_scales(layer), scales(0));
      executable.bind(decoder_io::value_scales(layer), scales(1));
    }
  }

  /// Throws before anything changes: a refused batch leaves every sequence as it was.
  std::int64_t check_batch(std::span<const SequenceTokens> batch) const {
    require(!batch.empty() && static_cast<std::int64_t>(batch.size()) <= options.max_sequences, "batch: expected 1 to {} sequences, found {}",
            options.max_sequences, batch.size());
    std::int64_t tokens = 0, new_pages = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      check_sequence(batch[i].sequence);
      for (std::size_t j = 0; j < i; ++j)
        require(batch[j].sequence != batch[i].sequence, "batch: expected each sequence once, found {} twice", batch[i].sequence);
      const auto count = static_cast<std::int64_t>(batch[i].tokens.size());
      require(count > 0, "sequence {}: expected at least one token, found none", batch[i].sequence);
      require(count <= cache.room(batch[i].sequence), "sequence {}: expected at most {} more tokens (context of {}), found {}", batch[i].sequence,
              cache.room(batch[i].sequence), context, count);
      for (const std::int32_t id : batch[i].tokens)
        require(id >= 0 && id < config().vocab_size, "token id: expected 0 to {}, found {}", config().vocab_size - 1, id);
      new_pages += div_up(cache.length(batch[i].sequence) + count, block_size) - static_cast<std::int64_t>(cache.pages(batch[i].sequence).size());
      tokens += count;
    }
    require(tokens <= options.max_batch_tokens, "batch: expected at most {} tokens, found {}", options.max_batch_tokens, tokens);
    require(new_pages <= cache.free_pages(), "batch: expected room for {} more cache pages, found {}", new_pages, cache.free_pages());
    return tokens;
  }

  void check_sequence(int sequence) const {
    require(sequence >= 0 && sequence < options.max_sequences, "sequence: expected 0 to {}, found {}", options.max_sequences - 1, sequence);
  }

  /// Appends the batch to the cache's page tables and fills the graph's index inputs. Returns the number of logit rows.
  std::int64_t fill_inputs(std::span<const SequenceTokens> batch, Logits which, PassInputs& in) {
    in.begin();
    std::size_t t = 0, rows = 0;
    for (std::size_t b = 0; b < batch.size(); ++b) {
      const SequenceTokens& part = batch[b];
      const std::int64_t start = cache.length(part.sequence);
      cache.append(part.sequence, static_cast<std::int64_t>(part.tokens.size()));
      in.query_starts()[b] = static_cast<std::int32_t>(t);
      for (std::size_t i = 0; i < part.tokens.size(); ++i, ++t) {
        const std::int64_t position = start + static_cast<std::int64_t>(i);
        in.ids()[t] = part.tokens[i];
        in.positions()[t] = static_cast<std::int32_t>(position);
        in.slots()[t] = cache.slot(part.sequence, position);
        if (which == Logits::all || i + 1 == part.tokens.size()) in.logit_rows()[rows++] = static_cast<std::int32_t>(t);
      }
      in.context_lens()[b] = static_cast<std::int32_t>(cache.length(part.sequence));
      std::ranges::copy(cache.pages(part.sequence), in.block_table(static_cast<std::int64_t>(b)).begin());
    }
    in.query_starts()[batch.size()] = static_cast<std::int32_t>(t);
    return static_cast<std::int64_t>(rows);
  }

  Pass& pass_for(std::int64_t tokens) {
    return *std::ranges::find_if(passes, [&](const Pass& p) { return tokens <= p.tokens; });
  }

  /// With `chosen`, the id of the batch's only token lies where the pass reads it.
  TensorView forward(std::span<const SequenceTokens> batch, Logits which, Memory memory, bool chosen = false) {
    const std::int64_t tokens = check_batch(batch);
    std::int64_t longest = 0;
    for (const SequenceTokens& part : batch) longest = std::max(longest, cache.length(part.sequence) + static_cast<std::int64_t>(part.tokens.size()));
    if (rotary->cover(longest) && stream) upload_rotary();
    Pass& pass = pass_for(tokens);
    const std::int64_t rows = fill_inputs(batch, which, *pass.inputs);
    pass.inputs->upload(static_cast<std::int64_t>(batch.size()), !chosen);
    SymbolValues counts;
    counts.set(symbols.tokens, tokens);
    counts.set(symbols.sequences, static_cast<std::int64_t>(batch.size()));
    counts.set(symbols.rows, rows);
    last_pass = static_cast<std::size_t>(&pass - passes.data());
    pass.executable.run(counts);
    pass.inputs->pass_enqueued();
    if (!device->computes()) return {null_logits.data(), DType::f32, {rows, config().vocab_size}};
    const TensorView logits = pass.executable.output(decoder_io::logits);
    return stream && memory == Memory::host ? download(logits) : logits;
  }

  /// Logits in host memory, complete.
  TensorView download(const TensorView& logits) {
    const std::int64_t bytes = dense_bytes_of(logits);
    if (host_logits.size() < bytes) {
      host_logits = {};
      host_logits = device->allocate_host(bytes);
    }
    stream->download(host_logits.data(), logits.data, bytes);
    stream->synchronize();
    return {host_logits.data(), logits.dtype, logits.shape};
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

Engine Engine::load(const std::filesystem::path& folder, const EngineOptions& options) {
  check_counts(options);
  Checkpoint checkpoint = Checkpoint::open(folder);
  const DType stored = storage_type(checkpoint);
  return Engine(std::make_unique<State>(std::move(checkpoint), options, stored));
}

const ModelConfig& Engine::config() const { return state_->config(); }
DType Engine::dtype() const { return state_->operands; }
std::string Engine::device_name() const { return state_->device->name(); }
int Engine::threads() const { return state_->pool.size(); }
std::int64_t Engine::max_batch_tokens() const { return state_->options.max_batch_tokens; }
CacheSize Engine::cache_size() const { return {state_->pages, block_size, state_->options.max_sequences, state_->context}; }
std::int64_t Engine::short_pass_tokens() const { return state_->stream ? 0 : state_->passes.front().tokens; }

TensorView Engine::forward(std::span<const SequenceTokens> batch, Logits which, Memory memory) { return state_->forward(batch, which, memory); }
bool Engine::computes() const { return state_->device->computes(); }
DeviceQueue Engine::queue() const { return state_->queue; }

TensorView Engine::prefill(int sequence, std::span<const std::int32_t> tokens, Memory memory) {
  state_->check_sequence(sequence);
  require(!tokens.empty(), "sequence {}: expected at least one token, found none", sequence);
  require(static_cast<std::int64_t>(tokens.size()) <= room(sequence), "sequence {}: expected at most {} more tokens (context of {}), found {}", sequence,
          room(sequence), state_->context, tokens.size());
  TensorView logits;
  const auto chunk = static_cast<std::size_t>(state_->options.max_batch_tokens);
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const SequenceTokens part{sequence, tokens.subspan(begin, std::min(chunk, tokens.size() - begin))};
    logits = state_->forward({&part, 1}, Logits::last, memory);
  }
  return logits;
}

std::int32_t* Engine::chosen_id() {
  CERMET_ASSERT(state_->stream != nullptr);
  return state_->pass_for(1).inputs->ids_in_graph();
}

TensorView Engine::forward_chosen(int sequence) {
  CERMET_ASSERT(state_->stream != nullptr);
  constexpr std::int32_t placeholder = 0;
  const SequenceTokens step{sequence, {&placeholder, 1}};
  return state_->forward({&step, 1}, Logits::last, Memory::device, true);
}

void Engine::drop(int sequence, std::int64_t tokens) {
  state_->check_sequence(sequence);
  require(tokens >= 0 && tokens <= length(sequence), "sequence {}: expected 0 to {} tokens to drop, found {}", sequence, length(sequence), tokens);
  state_->cache.drop(sequence, tokens);
}

void Engine::reset(int sequence) {
  state_->check_sequence(sequence);
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

std::int64_t Engine::cache_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* buffers : {&state_->cache_memory, &state_->cache_scales})
    for (const DeviceBuffer& buffer : *buffers) bytes += buffer.size();
  return bytes;
}

std::span<const StepInfo> Engine::steps(bool prefill) const { return (prefill ? state_->passes.back() : state_->passes.front()).executable.steps(); }

void Engine::set_timing(bool on) {
  for (State::Pass& pass : state_->passes) {
    pass.executable.set_timing(on);
    pass.executable.reset_timers();
  }
}

EngineRun Engine::last_run() const {
  const Executable& executable = state_->passes[state_->last_pass].executable;
  return {executable.steps(), executable.last_launches(), executable.last_start()};
}

LoadTimes Engine::load_times() const { return state_->load_times; }

std::int64_t Engine::fallbacks() const {
  std::int64_t count = 0;
  for (const State::Pass& pass : state_->passes)
    for (const StepInfo& step : pass.executable.steps()) count += step.fallbacks;
  return count;
}

ThreadPool& Engine::pool() { return state_->pool; }

}  // namespace cermet
