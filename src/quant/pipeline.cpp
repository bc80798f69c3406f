#include "quant/pipeline.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "io/new_folder.hpp"
#include "io/safetensors.hpp"
#include "quant/layer_quantizer.hpp"
#include "quant/working_state.hpp"

namespace cermet {

namespace {

using Clock = std::chrono::steady_clock;

void check_options(const QuantizeOptions& options) {
  require(!options.out.empty(), "out: expected a folder, found none");
  require_new_or_empty(options.out);
  require(options.clamp_percentile > 50 && options.clamp_percentile <= 100,
          "clamp percentile: expected more than 50 and at most 100, found {}", options.clamp_percentile);
  require(options.range == 127 || options.range == 127.5, "range: expected 127 or 127.5, found {}", options.range);
  require(options.min_expert_tokens >= 1, "least tokens of an expert: expected at least 1, found {}",
          options.min_expert_tokens);
}

/// Refuses a checkpoint that is quantized already.
void check_source(const Checkpoint& checkpoint) {
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.dtype == DType::f64)
      fail(Status::unsupported, "{}: {}: expected f32, bf16 or f16, found f64",
           checkpoint.file_of(tensor).path().string(), tensor.name);
    if (tensor.dtype == DType::i8 || dtypes::fp8.contains(tensor.dtype) || tensor.name.ends_with(".weight_scale"))
      fail(Status::unsupported,
           "{}: expected a checkpoint in f32, bf16 or f16, found one that is quantized already ({} is {})",
           checkpoint.folder().string(), tensor.name, name_of(tensor.dtype));
  }
}

/// |h - h'|^2 and |h - x|^2 over held-out tokens.
struct LayerError {
  double error = 0, change = 0;
  void add(const float* input, const float* expected, const float* found, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double e = static_cast<double>(expected[i]) - static_cast<double>(found[i]),
                   c = static_cast<double>(expected[i]) - static_cast<double>(input[i]);
      error += e * e;
      change += c * c;
    }
  }
};

class Pipeline {
 public:
  explicit Pipeline(const QuantizeOptions& options)
      : options_(options),
        checkpoint_(open(options)),
        stored_(storage_type(checkpoint_)),
        modules_(linear_modules(config())),
        set_(make_calibration_set(options, config(), LayerRunner::pass_tokens(options.device))),
        threads_(std::make_shared<ThreadPool>(options.threads)),
        pool_(*threads_) {
    options.policy.check(modules_);
  }

  std::vector<LayerResult> run() {
    report("preparing");
    WorkingState state(options_, checkpoint_);
    done_ = first_ = static_cast<std::int64_t>(state.results().size());
    if (done_ == config().layers) return state.results();
    hidden_ = done_ == 0 ? embed(set_, checkpoint_) : state.load_hidden(set_.tokens * config().hidden_size);
    Context context({options_.device, 0, threads_});
    LayerRunner runner(config(), stored_, set_, context);
    start_ = Clock::now();
    for (; done_ < config().layers; ++done_) run_layer(state, runner);
    report("done");
    return state.results();
  }

 private:
  static Checkpoint open(const QuantizeOptions& options) {
    check_options(options);
    Checkpoint checkpoint = Checkpoint::open(options.model);
    check_source(checkpoint);
    return checkpoint;
  }

  const ModelConfig& config() const { return checkpoint_.config(); }

  void report(std::string_view phase) const {
    if (!options_.progress) return;
    double left = -1;
    if (done_ > first_) {
      const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
      left = seconds / static_cast<double>(done_ - first_) * static_cast<double>(config().layers - done_);
    }
    options_.progress(done_, config().layers, left, phase);
  }

  void run_layer(WorkingState& state, LayerRunner& runner) {
    const std::int64_t layer = done_;
    std::vector<LinearModule> own;
    std::ranges::copy_if(modules_, std::back_inserter(own),
                         [&](const LinearModule& module) { return module.layer == layer; });
    report("reading");
    for (const ExpectedTensor& tensor : layer_tensors(config(), layer)) check_finite(checkpoint_, tensor.name, pool_);
    LayerCalibration calibration(config(), layer, set_, options_.seed, pool_);
    report("calibrating");
    const Quantization real;
    runner.run({layer, real, reader_of(checkpoint_), true, hidden_.data(), options_.cancelled},
               [&](const CalibrationPass& pass, PassResults& results) { calibration.add(pass, results); });
    report("searching");
    const std::filesystem::path file = layer_file(state.folder(), layer);
    LayerResult result = LayerQuantizer(options_, checkpoint_, layer, own, calibration, pool_).write(file);
    report("running the quantized layer");
    result.output_error = advance(runner, file, own, calibration);
    const bool last = layer + 1 == config().layers;
    state.complete(result, last ? std::span<const float>() : std::span<const float>(hidden_));
  }

  /// Runs the layer as it was written, from its file, and takes its output as the next one's input. Returns the layer's
  /// error on held-out tokens.
  double advance(LayerRunner& runner, const std::filesystem::path& file, const std::vector<LinearModule>& modules,
                 const LayerCalibration& calibration) {
    Quantization quantization{.format = Quantization::Format::compressed_tensors, .modules = {}};
    for (const LinearModule& module : modules) {
      const LinearScheme scheme = options_.policy.scheme_of(module.name);
      if (scheme.weight != LinearScheme::Weight::real) quantization.modules.emplace(module.name, scheme);
    }
    const SafetensorsFile tensors = SafetensorsFile::open(file);
    const TensorReader reader{[&](std::string_view name) { return tensors.find(name); },
                              [&](const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> to) {
                                tensors.read(tensor, offset, to);
                              }};
    LayerError error;
    const std::int64_t width = config().hidden_size;
    runner.run({done_, quantization, reader, false, hidden_.data(), options_.cancelled},
               [&](const CalibrationPass& pass, PassResults& results) {
                 const TensorView output = results.output(decoder_io::hidden);
                 float* own = hidden_.data() + pass.first_row * width;
                 if (pass.heldout)
                   error.add(own,
                             calibration.heldout_output().data() + (pass.first_row - set_.first_heldout_row) * width,
                             output.as<float>(), pass.tokens * width);
                 std::memcpy(own, output.data, static_cast<std::size_t>(pass.tokens * width) * sizeof(float));
               });
    return error.change > 0 ? error.error / error.change : 0;
  }

  const QuantizeOptions& options_;
  Checkpoint checkpoint_;
  DType stored_;
  std::vector<LinearModule> modules_;
  CalibrationSet set_;
  std::shared_ptr<ThreadPool> threads_;
  ThreadPool& pool_;
  std::vector<float> hidden_;  ///< [tokens, hidden_size] before the next layer
  std::int64_t done_ = 0, first_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

std::vector<LayerResult> run_layers(const QuantizeOptions& options) { return Pipeline(options).run(); }

// ---- Names and places that pipeline.hpp declares ----

namespace {

constexpr std::array<std::pair<std::string_view, AntiOutlier>, 5> names{{
    {"none", AntiOutlier::none},
    {"clamp", AntiOutlier::clamp},
    {"smooth", AntiOutlier::smooth},
    {"both", AntiOutlier::both},
    {"auto", AntiOutlier::automatic},
}};

}  // namespace

std::string_view name_of(AntiOutlier choice) { return names.at(static_cast<std::size_t>(choice)).first; }

std::optional<AntiOutlier> anti_outlier_named(std::string_view name) {
  for (const auto& [known, choice] : names)
    if (known == name) return choice;
  return std::nullopt;
}

std::filesystem::path working_folder(const std::filesystem::path& out) {
  std::filesystem::path folder = out.has_filename() ? out : out.parent_path();  // "out/" names the same folder
  folder += ".partial";
  return folder;
}

std::filesystem::path layer_file(const std::filesystem::path& working, std::int64_t layer) {
  return working / fmt::format("layer-{:04}.safetensors", layer);
}
std::filesystem::path result_file(const std::filesystem::path& working, std::int64_t layer) {
  return working / fmt::format("layer-{:04}.json", layer);
}

}  // namespace cermet
