// The pipeline on whole, small models: what it writes, and that it can be interrupted anywhere.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <map>
#include <set>

#include "model/checkpoint/checkpoint.hpp"
#include "quant/layer_runner.hpp"
#include "tests/quant/pipeline_runs.hpp"

namespace cermet::test {
namespace {

struct Interrupted {};

/// |h - h'|^2 / |h - x|^2 of a layer: h as the checkpoint has it, and h' from the written file with its weights
/// dequantized, so that inputs are not rounded.
double weight_only_error(const QuantizeOptions& options, const Checkpoint& source,
                         const std::vector<ModuleResult>& modules) {
  Context context({"cpu", 2});
  const CalibrationSet set = make_calibration_set(options, source.config(), LayerRunner::pass_tokens("cpu"));
  const std::vector<float> hidden = embed(set, source);
  LayerRunner runner(source.config(), storage_type(source), set, context);
  const auto run = [&](const Quantization& quantization, TensorReader reader) {
    std::vector<float> output(hidden.size());
    runner.run({0, quantization, std::move(reader), false, hidden.data()},
               [&](const CalibrationPass& pass, PassResults& results) {
                 const TensorView h = results.output(decoder_io::hidden);
                 std::memcpy(output.data() + pass.first_row * source.config().hidden_size, h.data,
                             static_cast<std::size_t>(h.elements()) * sizeof(float));
               });
    return output;
  };
  const SafetensorsFile file = SafetensorsFile::open(layer_file(working_folder(options.out), 0));
  Quantization quantization{.format = Quantization::Format::compressed_tensors, .modules = {}};
  for (const ModuleResult& module : modules) quantization.modules[module.name] = *scheme_named("w8a16");
  const std::vector<float> expected = run({}, reader_of(source));
  const std::vector<float> found = run(quantization, {[&](std::string_view name) { return file.find(name); },
                                                      [&](const StoredTensor& tensor, std::int64_t offset,
                                                          std::span<std::byte> to) { file.read(tensor, offset, to); }});
  double error = 0, change = 0;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    error += std::pow(static_cast<double>(expected[i] - found[i]), 2);
    change += std::pow(static_cast<double>(expected[i] - hidden[i]), 2);
  }
  return error / change;
}

class EveryReference : public testing::TestWithParam<std::string> {};

TEST_P(EveryReference, SmoothingKeepsTheFunction) {
  const ScratchFolder scratch;
  const fs::path model = references / GetParam();
  QuantizeOptions options = options_for(model, scratch / "out");
  options.anti_outlier = AntiOutlier::smooth;
  options.policy = Policy::uniform(*scheme_named("w8a8_dynamic"));
  const std::vector<LayerResult> results = run_layers(options);
  const Checkpoint source = Checkpoint::open(model);
  ASSERT_EQ(static_cast<std::int64_t>(results.size()), source.config().layers);
  std::set<std::string> smoothed;
  for (const LayerResult& layer : results) {
    // The models are random, so that their layers are wild; with a factor on one side only, this would be about 1.
    EXPECT_LT(layer.output_error, 0.02) << layer.layer;
    for (const ModuleResult& module : layer.modules) {
      EXPECT_LT(module.error, 0.005) << module.name;
      if (module.anti_outlier == "smooth") smoothed.insert(module.name.substr(module.name.rfind('.') + 1));
    }
    const SafetensorsFile file = SafetensorsFile::open(layer_file(working_folder(options.out), layer.layer));
    const StoredTensor* norm = file.find("model.layers." + std::to_string(layer.layer) + ".input_layernorm.weight");
    ASSERT_NE(norm, nullptr);
    std::vector<std::byte> after(static_cast<std::size_t>(norm->bytes())), before(after.size());
    file.read(*norm, 0, after);
    source.read(*source.find(norm->name), 0, before);
    EXPECT_NE(after, before) << "the division is in the norm";
  }
  // Without rounded inputs only the rounding of weights is left, and what a changed token's choice of experts makes of
  // it: no more than without smoothing. A bias or a row that was forgotten would show.
  const double smoothed_error = weight_only_error(options, source, results[0].modules);
  options.anti_outlier = AntiOutlier::none;
  options.out = scratch / "plain";
  const double plain_error = weight_only_error(options, source, run_layers(options)[0].modules);
  EXPECT_LT(smoothed_error, 2 * plain_error);
  EXPECT_LT(plain_error, 0.02);
  EXPECT_TRUE(smoothed.contains("q_proj") && smoothed.contains("o_proj")) << smoothed.size();
  EXPECT_GE(smoothed.size(), 7u);
}

TEST_P(EveryReference, EveryModuleObeysThePolicy) {
  const ScratchFolder scratch;
  const fs::path model = references / GetParam();
  QuantizeOptions options = options_for(model, scratch / "out");
  const std::vector<LayerResult> results = run_layers(options);
  const Checkpoint source = Checkpoint::open(model);
  for (const LayerResult& layer : results) {
    EXPECT_LT(layer.output_error, 0.1) << layer.layer << ": a random router changes its mind about some tokens";
    const SafetensorsFile file = SafetensorsFile::open(layer_file(working_folder(options.out), layer.layer));
    std::map<std::string, double> scale_of_group;
    for (const ModuleResult& module : layer.modules) {
      EXPECT_EQ(module.scheme, options.policy.scheme_of(module.name));
      const StoredTensor* weight = file.find(module.name + ".weight");
      const StoredTensor* scale = file.find(module.name + ".weight_scale");
      const StoredTensor* original = source.find(module.name + ".weight");
      ASSERT_TRUE(weight && scale && original) << module.name;
      EXPECT_EQ(weight->dtype, DType::i8);
      EXPECT_EQ(weight->shape, original->shape);
      EXPECT_EQ(scale->dtype, original->dtype);
      EXPECT_EQ(scale->shape, (std::vector<std::int64_t>{original->shape[0], 1}));
      const StoredTensor* input_scale = file.find(module.name + ".input_scale");
      ASSERT_EQ(input_scale != nullptr, module.scheme.input == LinearScheme::Input::fixed) << module.name;
      EXPECT_EQ(module.input_scale > 0, input_scale != nullptr) << module.name;
      EXPECT_EQ(LayerResult::from_json(layer.to_json(), "layer").to_json(), layer.to_json());
    }
    const auto attention = [&](std::size_t i) { return layer.modules[i].input_scale; };
    EXPECT_TRUE(attention(0) == attention(1) && attention(1) == attention(2))
        << "q, k and v read the same quantized values";
  }
}

INSTANTIATE_TEST_SUITE_P(Quantizer, EveryReference,
                         testing::Values("gemma2-softcap-window-bf16", "llama-bias-mha-f16", "llama-gqa-f32",
                                         "llama-rope-scaled-bf16", "mistral-window-bf16", "mixtral-bf16",
                                         "qwen2-bias-f16", "qwen3-qknorm-bf16", "qwen3moe-bf16",
                                         "qwen3moe-bias-top1-bf16", "qwen3moe-mixed-f32"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Pipeline, ThreadsAndPassesOfAnInterruptedRunChangeNothing) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "whole");
  run_layers(options);
  const std::map<std::string, std::string> expected = files_of(working_folder(options.out));
  ASSERT_EQ(expected.size(), 12u) << "a file and its figures for each of 6 layers";

  options.out = scratch / "threads";
  options.threads = 1;
  run_layers(options);
  EXPECT_EQ(files_of(working_folder(options.out)), expected);

  options.out = scratch / "stopped";
  for (const std::int64_t stop :
       {0, 1, 4}) {  // layers done when the run ends, in the phase before the layer is written and the one after
    for (const std::string_view where : {"searching", "running the quantized layer"}) {
      options.progress = [&](std::int64_t layer, std::int64_t, double, std::string_view phase) {
        if (layer == stop && phase == where) throw Interrupted();
      };
      EXPECT_THROW(run_layers(options), Interrupted);
    }
  }
  std::int64_t first = -1;
  options.progress = [&](std::int64_t layer, std::int64_t, double, std::string_view phase) {
    if (first < 0 && phase == "calibrating") first = layer;
  };
  const std::vector<LayerResult> results = run_layers(options);
  EXPECT_EQ(first, 4) << "the layers that were complete are not done again";
  EXPECT_EQ(results.size(), 6u);
  EXPECT_EQ(files_of(working_folder(options.out)), expected);
}

TEST(Pipeline, AKilledRunLosesAtMostOneLayer) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "whole");
  options.threads = 1;
  run_layers(options);
  const std::map<std::string, std::string> expected = files_of(working_folder(options.out));
  options.out = scratch / "killed";
  for (const std::int64_t stop : {2, 3}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      options.progress = [&](std::int64_t layer, std::int64_t, double, std::string_view phase) {
        if (layer == stop && phase == "running the quantized layer") kill(getpid(), SIGKILL);
      };
      run_layers(options);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_TRUE(fs::exists(result_file(working_folder(options.out), stop - 1)));
    // A write that was cut off leaves its temporary name.
    std::ofstream(working_folder(options.out) / "layer-0004.safetensors.tmp-1-2-3") << "half";
  }
  run_layers(options);
  EXPECT_EQ(files_of(working_folder(options.out)), expected);
}

TEST(Pipeline, AnotherRunsFolderIsNotTouched) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "out");
  options.progress = [](std::int64_t layer, std::int64_t, double, std::string_view phase) {
    if (layer == 1 && phase == "calibrating") throw Interrupted();
  };
  EXPECT_THROW(run_layers(options), Interrupted);
  options.progress = nullptr;
  fs::copy(demo, scratch / "copy");  // the same bytes, written at another time
  const std::string state = (working_folder(options.out) / "state.json").string();
  const auto expect_difference = [&](std::string_view field, const std::function<void(QuantizeOptions&)>& change) {
    QuantizeOptions changed = options;
    change(changed);
    expect_error(Status::invalid_argument, {state, field, "--restart"}, [&] { run_layers(changed); });
  };
  expect_difference("policy", [](QuantizeOptions& o) { o.policy = Policy::uniform(*scheme_named("w8a16")); });
  expect_difference("clamp_percentile: expected 99.0, found 99.9", [](QuantizeOptions& o) { o.clamp_percentile = 99; });
  expect_difference("calibration", [](QuantizeOptions& o) { o.calibration[2][3] ^= 1; });
  expect_difference("heldout", [](QuantizeOptions& o) { o.heldout = {{1, 2, 3}}; });
  expect_difference("anti_outlier: expected \"none\", found \"auto\"",
                    [](QuantizeOptions& o) { o.anti_outlier = AntiOutlier::none; });
  expect_difference("extra", [](QuantizeOptions& o) { o.fingerprint_extra = "x"; });
  expect_difference("sources", [&](QuantizeOptions& o) { o.model = scratch / "copy"; });

  options.anti_outlier = AntiOutlier::none;
  options.restart = true;
  const std::vector<LayerResult> results = run_layers(options);
  for (const ModuleResult& module : results[0].modules) EXPECT_EQ(module.anti_outlier, "none");
}

TEST(Pipeline, TwoRunsInOneFolder) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "out"), other = options;
  other.restart = true;  // which would take the first run's files away
  options.progress = [&](std::int64_t layer, std::int64_t, double, std::string_view phase) {
    if (layer == 1 && phase == "calibrating")
      expect_error(Status::io, {working_folder(options.out).string(), "no other run works in", "another run"},
                   [&] { run_layers(other); });
  };
  const std::vector<LayerResult> results = run_layers(options);
  EXPECT_EQ(results.size(), 6u);
  EXPECT_NO_THROW(run_layers(other));  // the first has ended
}

TEST(Pipeline, ExpertsThatNoPromptReachesAreRoundedToNearest) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "out");
  options.calibration = {{1, 2, 3}};
  options.every_scheme = true;
  const std::vector<LayerResult> results = run_layers(options);
  std::int64_t fallbacks = 0;
  for (const LayerResult& layer : results) {
    std::int64_t tokens = 0;
    for (const std::int64_t count : layer.expert_tokens) tokens += count;
    EXPECT_EQ(tokens, 3 * 2) << "each token goes to two experts";
    for (const ModuleResult& module : layer.modules) {
      const std::size_t at = module.name.find("experts.");
      if (at == std::string::npos) continue;
      EXPECT_EQ(module.tokens, layer.expert_tokens[static_cast<std::size_t>(std::stoi(module.name.substr(at + 8)))]);
      EXPECT_TRUE(module.fallback) << "three tokens are fewer than the eight that an expert needs";
      EXPECT_EQ(module.clip_ratio, 1) << module.name;
      EXPECT_EQ(module.errors.empty(), module.tokens == 0) << module.name;
      ++fallbacks;
    }
  }
  EXPECT_EQ(fallbacks, 6 * 8 * 3);
}

TEST(Pipeline, EverySchemeIsMeasured) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(references / "llama-gqa-f32", scratch / "out");
  options.every_scheme = true;
  for (const LayerResult& layer : run_layers(options)) {
    for (const ModuleResult& module : layer.modules) {
      ASSERT_EQ(module.errors.size(), 6u) << module.name;
      EXPECT_EQ(module.errors.at("w8a8_static"), module.error);
      EXPECT_LT(module.errors.at("w8a16"), module.errors.at("w8a8_dynamic"));
      EXPECT_LT(module.errors.at("fp8_weight_only"), module.errors.at("fp8_dynamic"));
      for (const auto& [scheme, error] : module.errors)
        EXPECT_TRUE(error > 0 && error < 0.02) << module.name << ": " << scheme << ": " << error;
    }
  }
}

TEST(Pipeline, LongPromptsGoInPasses) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "out");
  options.calibration = prompts_of(load_config(demo).vocab_size, 2, 700);  // a pass takes 512 tokens
  options.heldout = prompts_of(load_config(demo).vocab_size, 3, 400);
  for (const LayerResult& layer : run_layers(options)) {
    EXPECT_EQ(layer.modules[0].tokens, 1400);
    EXPECT_LT(layer.output_error, 0.02);
  }
}

}  // namespace
}  // namespace cermet::test
