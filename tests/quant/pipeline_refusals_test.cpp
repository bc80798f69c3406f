// What the pipeline refuses, and runs that fail or are cancelled: what they leave behind.
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>

#include "format/element.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "tests/quant/pipeline_runs.hpp"

namespace cermet::test {
namespace {

/// A copy of a checkpoint of one file with a tensor's element changed.
fs::path with_element(const ScratchFolder& scratch, const fs::path& model, const std::string& tensor,
                      std::int64_t index, double value) {
  const fs::path copy = scratch / "changed";
  fs::remove_all(copy);
  fs::copy(model, copy);
  const Checkpoint source = Checkpoint::open(model);
  const StoredTensor& stored = *source.find(tensor);
  std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
  source.read(stored, 0, bytes);
  format::store_element(bytes.data(), stored.dtype, index, value);
  std::string file = content_of(copy / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  std::memcpy(file.data() + 8 + header + stored.begin, bytes.data(), bytes.size());
  std::ofstream(copy / "model.safetensors", std::ios::binary) << file;
  return copy;
}

TEST(Pipeline, ValuesThatAreNotFinite) {
  const ScratchFolder scratch;
  const fs::path model = references / "llama-gqa-f32";
  const auto refuse = [&](const std::string& tensor, double value, std::initializer_list<std::string_view> fragments) {
    const QuantizeOptions options =
        options_for(with_element(scratch, model, tensor, 7, value), scratch / ("out-" + tensor));
    expect_error(Status::invalid_file, fragments, [&] { run_layers(options); });
    EXPECT_FALSE(fs::exists(options.out));
    EXPECT_TRUE(fs::exists(result_file(working_folder(options.out), 0)));
    EXPECT_FALSE(fs::exists(layer_file(working_folder(options.out), 1)));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refuse("model.layers.1.self_attn.k_proj.weight", nan,
         {"model.safetensors", "model.layers.1.self_attn.k_proj.weight", "finite", "NaN"});
  refuse("model.layers.1.mlp.down_proj.weight", nan, {"model.layers.1.mlp.down_proj.weight", "finite", "NaN"});
  refuse("model.layers.1.post_attention_layernorm.weight", 1e38, {"layer 1", "model.layers.1.mlp.down_proj", "finite"});
}

TEST(Pipeline, PromptsAreChecked) {
  const ScratchFolder scratch;
  const QuantizeOptions options = options_for(references / "llama-gqa-f32", scratch / "out");
  const ModelConfig config = load_config(options.model);
  const auto refuse = [&](std::initializer_list<std::string_view> fragments,
                          const std::function<void(QuantizeOptions&)>& change) {
    QuantizeOptions changed = options;
    change(changed);
    expect_error(Status::invalid_argument, fragments, [&] { run_layers(changed); });
  };
  refuse({"calibration", "at least one prompt"}, [](QuantizeOptions& o) { o.calibration.clear(); });
  refuse({"calibration prompt 3", "at least one token"}, [](QuantizeOptions& o) { o.calibration[2].clear(); });
  refuse({"calibration prompt 1", "token ids", "-1"}, [](QuantizeOptions& o) { o.calibration[0][5] = -1; });
  refuse({"held-out prompt 1", "token ids", std::to_string(config.vocab_size)},
         [&](QuantizeOptions& o) { o.heldout = {{static_cast<std::int32_t>(config.vocab_size)}}; });
  refuse({"calibration prompt 2", "at most", "tokens"}, [&](QuantizeOptions& o) {
    o.calibration[1].assign(static_cast<std::size_t>(config.max_position_embeddings) + 1, 1);
  });
  refuse({"clamp percentile", "50"}, [](QuantizeOptions& o) { o.clamp_percentile = 20; });
  refuse({"range", "127"}, [](QuantizeOptions& o) { o.range = 128; });
  refuse({"null"}, [](QuantizeOptions& o) { o.device = "null"; });
}

TEST(Pipeline, AQuantizedCheckpointIsRefused) {
  const ScratchFolder scratch;
  const fs::path model = scratch / "quantized";
  fs::copy(references / "llama-gqa-f32", model);
  const std::vector<TensorSpec> specs{{"model.layers.0.self_attn.q_proj.weight", DType::i8, {2, 2}}};
  SafetensorsWriter writer(model / "model.safetensors", specs);
  writer.write(0, 0, std::array<std::byte, 4>{});
  writer.commit();
  expect_error(Status::unsupported, {"quantized already", "model.layers.0.self_attn.q_proj.weight"},
               [&] { run_layers(options_for(model, scratch / "out")); });
}

TEST(Pipeline, FoldersInTheWay) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(references / "llama-gqa-f32", scratch / "out");
  fs::create_directory(scratch / "out");
  scratch.file("out/x", "y");
  expect_error(Status::invalid_argument, {"out", "empty"}, [&] { run_layers(options); });
  options.out = scratch / "other";
  fs::create_directory(scratch / "other.partial");
  scratch.file("other.partial/notes.txt", "mine");
  expect_error(Status::io, {"other.partial", "other files"}, [&] { run_layers(options); });
  EXPECT_EQ(content_of(scratch / "other.partial/notes.txt"), "mine");
}

TEST(Pipeline, AFullDisk) {
  const ScratchFolder scratch;
  const QuantizeOptions options = options_for(demo, scratch / "out");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::optional<Error> error = error_of([&] { run_layers(options); });
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status(), Status::io) << error->what();
  EXPECT_NE(std::string_view(error->what()).find("layer-0000"), std::string_view::npos) << error->what();
  EXPECT_EQ(files_of(working_folder(options.out)).size(), 0u) << "nothing is left under any name";
  run_layers(options);
}

TEST(Pipeline, Cancelling) {
  const ScratchFolder scratch;
  QuantizeOptions options = options_for(demo, scratch / "out");
  std::atomic<bool> cancelled{false};
  options.cancelled = &cancelled;
  double last = -1;
  options.progress = [&](std::int64_t layer, std::int64_t layers, double left, std::string_view) {
    EXPECT_EQ(layers, 6);
    EXPECT_EQ(left >= 0, layer > 0);
    last = left;
    if (layer == 2) cancelled = true;
  };
  expect_error(Status::cancelled, {"stopped"}, [&] { run_layers(options); });
  cancelled = false;
  options.progress = nullptr;
  EXPECT_EQ(run_layers(options).size(), 6u);
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace cermet::test
