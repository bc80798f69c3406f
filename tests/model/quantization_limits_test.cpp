// Quantized checkpoints whose metadata is huge: refused, or read in linear time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "io/json_file.hpp"
#include "model/checkpoint/compressed_tensors.hpp"
#include "model/engine.hpp"
#include "tests/model/plain_decoder.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::PlainDecoder;
using test::ScratchFolder;

/// A file with one tensor of zeros that takes no space on disk.
void write_sparse(const std::filesystem::path& path, std::string_view tensor, std::uint64_t bytes) {
  const std::string header =
      fmt::format(R"({{"{}":{{"dtype":"I8","shape":[{}],"data_offsets":[0,{}]}}}})", tensor, bytes, bytes);
  char length[8];
  const std::uint64_t size = header.size();
  std::memcpy(length, &size, sizeof length);
  std::ofstream(path, std::ios::binary) << std::string_view(length, sizeof length) << header;
  std::filesystem::resize_file(path, sizeof length + header.size() + bytes);
}

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

TEST(QuantizationLimits, AnExtraTensorOfManyZerosIsRefusedBeforeItIsRead) {
  PlainDecoder decoder(references / "llama-gqa-f32");
  for (const LinearModule& module : linear_modules(decoder.config()))
    if (is_projection(module)) decoder.quantize(module.name, *scheme_named("w8a8_dynamic"));
  for (const char* tensor : {"model.layers.0.mlp.up_proj.weight_zero_point",
                             "model.layers.0.mlp.up_proj.input_zero_point", "model.norm.bias"}) {
    const ScratchFolder scratch;
    decoder.write(scratch / "model", PlainDecoder::Format::compressed_tensors);
    std::string places;
    const SafetensorsFile file = SafetensorsFile::open(scratch / "model/model.safetensors");
    for (const StoredTensor& stored : file.tensors()) places += fmt::format(R"("{}":"a.safetensors",)", stored.name);
    std::filesystem::rename(scratch / "model/model.safetensors", scratch / "model/a.safetensors");
    write_sparse(scratch / "model/b.safetensors", tensor, std::uint64_t{1} << 36);
    scratch.file("model/model.safetensors.index.json",
                 fmt::format(R"({{"weight_map":{{{}"{}":"b.safetensors"}}}})", places, tensor));
    const std::int64_t before = peak_bytes();
    expect_error(Status::invalid_file,
                 {"b.safetensors", tensor, "expected at most", "elements, found shape [68719476736]"},
                 [&] { Engine::load(scratch / "model", {}); });
    EXPECT_LT(peak_bytes() - before, std::int64_t{256} << 20);
  }
}

/// Seconds of processor time that a configuration takes which lists every module of a mixture by name, in two groups.
double seconds_for(std::int64_t experts) {
  const ScratchFolder scratch;
  nlohmann::json config = nlohmann::json::parse(content_of(references / "qwen3moe-bf16/config.json"));
  config["num_local_experts"] = experts;
  config["num_hidden_layers"] = 32;
  scratch.file("config.json", config.dump());
  const ModelConfig model = load_config(scratch.path());
  std::string lists[2];
  std::size_t count = 0;
  for (const LinearModule& module : linear_modules(model)) {
    std::string& list = lists[count++ % 2];
    list += fmt::format(R"({}"{}")", list.empty() ? "" : ",", module.name);
  }
  const auto group = [&](int i) {
    return fmt::format(R"({{"targets":[{}],"weights":{{"num_bits":8,"type":"int","strategy":"channel"}}}})", lists[i]);
  };
  const std::string text = fmt::format(
      R"({{"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{{"a":{},"b":{}}}}})", group(0),
      group(1));
  const JsonDocument document = JsonDocument::parse(
      text, "config.json", {.max_bytes = text.size(), .max_values = 2 * count + 100, .max_depth = 32});
  const std::clock_t start = std::clock();
  EXPECT_EQ(read_compressed_tensors(document.root(), model).modules.size(), count);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(QuantizationLimits, ModulesListedByNameTakeLinearTime) {
  // What runs beside a measurement only adds to it, so that the least of several is near the work itself; more are
  // taken while it does not fit.
  double few = seconds_for(104), many = seconds_for(1040);  // 10,000 and 100,000 modules
  for (int turn = 1; turn < 2 || (turn < 8 && many >= 60 * few); ++turn)
    few = std::min(few, seconds_for(104)), many = std::min(many, seconds_for(1040));
  EXPECT_LT(many, 60 * few) << "linear: 10 times, and up to 45 where hash tables leave a cache that other programs "
                               "use, too; quadratic: 100 times";
}

TEST(QuantizationLimits, ManyExpressionsAreRefused) {
  std::string targets;
  for (int i = 0; i <= 1000; ++i) targets += fmt::format(R"({}"re:model\\.layers\\.{}\\..*")", i ? "," : "", i);
  const std::string text = fmt::format(
      R"({{"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{{"a":{{"targets":[{}],"weights":{{"num_bits":8,"type":"int","strategy":"channel"}}}}}}}})",
      targets);
  expect_error(Status::unsupported, {"config_groups.a.targets[1000]: expected at most 1000 expressions"}, [&] {
    read_compressed_tensors(JsonDocument::parse(text, "config.json").root(), load_config(references / "llama-gqa-f32"));
  });
}

}  // namespace
}  // namespace cermet
