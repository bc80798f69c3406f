#include "quant/layer_runner.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/checked.hpp"
#include "model/rotary.hpp"
#include "runtime/session.hpp"

namespace cermet {
namespace {

constexpr std::int64_t block_size = 16;  // tokens of a cache page
constexpr std::int64_t host_pass = 512, device_pass = 2048;

std::int64_t pages_of(std::int64_t tokens) { return div_up(tokens, block_size); }

/// Sizes that all passes fit into.
struct Sizes {
  std::int64_t tokens = 0, sequences = 0, pages = 0, pages_per_sequence = 0;

  explicit Sizes(const CalibrationSet& set) : pages_per_sequence(pages_of(set.longest)) {
    for (const CalibrationPass& pass : set.passes) {
      tokens = std::max(tokens, pass.tokens);
      sequences = std::max(sequences, static_cast<std::int64_t>(pass.parts.size()));
      std::int64_t held = 0;
      for (const CalibrationPass::Part& part : pass.parts) held += pages_of(part.begin + part.count);
      pages = std::max(pages, held);
    }
  }
};

std::int64_t bytes_of(const TensorView& view) { return dense_bytes(view.dtype, view.shape); }

}  // namespace

struct LayerRunner::State {
  const ModelConfig& config;
  DType stored;
  const CalibrationSet& set;
  Context& context;
  Stream* stream;  ///< null where the CPU's kernels run
  Sizes sizes;
  RotaryTables rotary;
  /// An input of the graph: written on the host, and where there is a device copied to it.
  struct Input {
    OwnedTensor host;
    DeviceBuffer device;
  };
  std::map<std::string, Input> inputs;
  DeviceBuffer keys, values;

  State(const ModelConfig& model, DType dtype, const CalibrationSet& prompts, Context& on)
      : config(model),
        stored(dtype),
        set(prompts),
        context(on),
        stream(on.stream()),
        sizes(prompts),
        rotary(model, DType::f32, sizes.pages_per_sequence * block_size, sizes.tokens) {
    require(context.computes(), "device: expected one that computes, found {}", context.device_spec());
    add_input(decoder_io::positions, DType::i32, {sizes.tokens});
    add_input(decoder_io::slots, DType::i32, {sizes.tokens});
    add_input(decoder_io::block_tables, DType::i32, {sizes.sequences, sizes.pages_per_sequence});
    add_input(decoder_io::context_lens, DType::i32, {sizes.sequences});
    add_input(decoder_io::query_starts, DType::i32, {sizes.sequences + 1});
    add_input(decoder_io::hidden, DType::f32, {sizes.tokens, config.hidden_size});
    add_input(decoder_io::rope_cos, DType::f32, rotary.cos().shape);
    add_input(decoder_io::rope_sin, DType::f32, rotary.sin().shape);
    std::int64_t cache_bytes = 0;
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
      cache_bytes = std::max(cache_bytes, dense_bytes(stored, cache_shape(layer)));
    keys = context.device().allocate(cache_bytes);
    values = context.device().allocate(cache_bytes);
  }

  Shape cache_shape(std::int64_t layer) const {
    const auto& attention = *find_body<Attention>(config.decoder.layers[static_cast<std::size_t>(layer)]);
    return {sizes.pages, attention.kv_heads, block_size, attention.head_dim};
  }

  void add_input(const char* name, DType dtype, const Shape& shape) {
    Input& input = inputs[name];
    input.host = OwnedTensor(dtype, shape);
    std::memset(input.host.memory.data(), 0, static_cast<std::size_t>(input.host.memory.size()));
    if (stream) input.device = context.device().allocate(input.host.memory.size());
  }

  std::int32_t* index(const char* name) { return inputs.at(name).host.view.as<std::int32_t>(); }

  void bind(Executable& executable, std::int64_t layer) {
    for (auto& [name, input] : inputs) {
      TensorView view = input.host.view;
      if (stream) view.data = input.device.data();
      executable.bind(name, view);
    }
    executable.bind(decoder_io::key_cache(layer), TensorView(keys.data(), stored, cache_shape(layer)));
    executable.bind(decoder_io::value_cache(layer), TensorView(values.data(), stored, cache_shape(layer)));
  }

  /// Every sequence has the pages that follow those of the one before, so that the parts of a long prompt find theirs
  /// again.
  void fill(const CalibrationPass& pass, const float* hidden) {
    std::int64_t token = 0, page = 0;
    rotary.begin_pass();
    for (std::size_t b = 0; b < pass.parts.size(); ++b) {
      const CalibrationPass::Part& part = pass.parts[b];
      const std::int64_t length = part.begin + part.count, whole = std::ssize(set.prompts[part.prompt]);
      index(decoder_io::query_starts)[b] = static_cast<std::int32_t>(token);
      index(decoder_io::context_lens)[b] = static_cast<std::int32_t>(length);
      for (std::int64_t position = part.begin; position < length; ++position, ++token) {
        index(decoder_io::positions)[token] = rotary.row(position, whole);
        index(decoder_io::slots)[token] = static_cast<std::int32_t>(page * block_size + position);
      }
      std::int32_t* table = index(decoder_io::block_tables) + static_cast<std::int64_t>(b) * sizes.pages_per_sequence;
      std::iota(table, table + pages_of(length), static_cast<std::int32_t>(page));
      page += pages_of(length);
    }
    index(decoder_io::query_starts)[pass.parts.size()] = static_cast<std::int32_t>(token);
    std::memcpy(inputs.at(decoder_io::hidden).host.memory.data(), hidden + pass.first_row * config.hidden_size,
                static_cast<std::size_t>(pass.tokens * config.hidden_size) * sizeof(float));
    for (const auto& [name, table] :
         {std::pair{decoder_io::rope_cos, rotary.cos()}, {decoder_io::rope_sin, rotary.sin()}})
      std::memcpy(inputs.at(name).host.memory.data(), table.data, static_cast<std::size_t>(bytes_of(table)));
    if (!stream) return;
    for (auto& [name, input] : inputs)
      stream->upload(input.device.data(), input.host.memory.data(), input.host.memory.size());
  }
};

namespace {

class Results : public PassResults {
 public:
  explicit Results(Session& session) : session_(session) {}
  TensorView output(const char* name) override { return session_.host_output(name); }

 private:
  Session& session_;
};

}  // namespace

LayerRunner::LayerRunner(const ModelConfig& config, DType stored, const CalibrationSet& set, Context& context)
    : state_(std::make_unique<State>(config, stored, set, context)) {}
LayerRunner::~LayerRunner() = default;

std::int64_t LayerRunner::pass_tokens(const std::string& device) { return device == "cpu" ? host_pass : device_pass; }

void LayerRunner::run(const Work& work, FunctionRef<void(const CalibrationPass&, PassResults&)> visit) {
  State& s = *state_;
  const DType operands = s.stream ? s.stored : DType::f32;  // a GPU's fast products want 16 bits on both sides
  DecoderGraph decoder = build_decoder_layer(s.config, {s.stored, operands, s.stored}, work.quantization,
                                             {s.sizes.pages, block_size, s.sizes.pages_per_sequence, s.rotary.rows()},
                                             work.layer, work.taps);
  SessionOptions options;
  options.maximum.set(Symbol("T"), s.sizes.tokens);
  options.maximum.set(Symbol("B"), s.sizes.sequences);
  Session session(std::move(decoder.graph), s.context, make_weight_loader(work.reader, std::move(decoder.sources), {}),
                  options);
  s.bind(session.executable(), work.layer);
  Results results(session);
  for (const CalibrationPass& pass : s.set.passes) {
    if (work.cancelled && *work.cancelled) fail(Status::cancelled, "quantize: stopped");
    s.fill(pass, work.hidden);
    SymbolValues symbols;
    symbols.set(Symbol("T"), pass.tokens);
    symbols.set(Symbol("B"), static_cast<std::int64_t>(pass.parts.size()));
    session.run(symbols);
    if (s.stream) s.stream->synchronize();
    visit(pass, results);
  }
}

}  // namespace cermet
