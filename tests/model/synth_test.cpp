#include "model/synth.hpp"

#include <sys/resource.h>

#include <cmath>
#include <numeric>

#include "format/element.hpp"
#include "model/checkpoint/checkpoint_report.hpp"
#include "model/random_weights.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::ScratchFolder;

const std::filesystem::path moe_config = model_data / "reference/qwen3moe-bf16/config.json";

std::vector<double> values_of(const Checkpoint& checkpoint, std::string_view name) {
  const StoredTensor& tensor = *checkpoint.find(name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  checkpoint.read(tensor, 0, bytes);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    values.push_back(format::load_element(bytes.data(), tensor.dtype, i));
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments m;
  const double n = static_cast<double>(values.size());
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  for (const double v : values) {
    m.deviation += (v - m.mean) * (v - m.mean) / n;
    m.largest = std::max(m.largest, std::abs(v));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Synth, WritesEveryArchitecture) {
  ThreadPool pool(2);
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(model_data / "reference")) {
    SCOPED_TRACE(entry.path());
    const ScratchFolder scratch;
    const SynthOptions options{.config_file = entry.path() / "config.json", .out = scratch / "model"};
    const SynthResult result = write_random_checkpoint(options, pool);
    EXPECT_EQ(scratch.entries(), 1);
    EXPECT_EQ(content_of(scratch / "model/config.json"), content_of(options.config_file));
    const CheckpointCheck checked = check(Checkpoint::open(scratch / "model"), pool);
    EXPECT_TRUE(checked.report.problems.empty()) << checked.report.problems[0];
    EXPECT_TRUE(checked.report.warnings.empty());
    EXPECT_TRUE(checked.non_finite.empty());
    EXPECT_EQ(checked.bytes_read, result.bytes);
    EXPECT_EQ(checked.report.tensors, result.tensors);
    EXPECT_EQ(checked.report.parameters, result.parameters);
  }
}

TEST(Synth, ValuesHaveTheStatedDistribution) {
  const ScratchFolder scratch;
  ThreadPool pool(2);
  write_random_checkpoint({.config_file = moe_config, .out = scratch / "model", .seed = 3}, pool);
  const Checkpoint checkpoint = Checkpoint::open(scratch / "model");
  ASSERT_EQ(checkpoint.config().initializer_range, 0.2);
  const Moments weights = moments_of(values_of(checkpoint, "model.embed_tokens.weight"));  // 30720 values
  EXPECT_NEAR(weights.mean, 0, 5 * 0.2 / std::sqrt(30720.0));
  EXPECT_NEAR(weights.deviation, 0.2, 5 * 0.2 / std::sqrt(2 * 30720.0));
  EXPECT_LT(weights.largest, 0.2 * 4.5);
  EXPECT_GT(weights.largest, 0.2 * 3.2);
  const Moments norm = moments_of(values_of(checkpoint, "model.norm.weight"));  // 96 values
  EXPECT_NEAR(norm.mean, 1, 5 * 0.2 / std::sqrt(96.0));
  EXPECT_GT(norm.deviation, 0.1);
  EXPECT_NE(values_of(checkpoint, "model.layers.0.self_attn.k_proj.weight"),
            values_of(checkpoint, "model.layers.1.self_attn.k_proj.weight"));
}

TEST(Synth, TheSameSeedGivesTheSameBytesOnAnyNumberOfThreads) {
  const ScratchFolder scratch;
  ThreadPool one(1), three(3);
  write_random_checkpoint({.config_file = moe_config, .out = scratch / "a", .seed = 5}, one);
  write_random_checkpoint({.config_file = moe_config, .out = scratch / "b", .seed = 5}, three);
  write_random_checkpoint({.config_file = moe_config, .out = scratch / "c", .seed = 6}, three);
  const std::string a = content_of(scratch / "a/model.safetensors");
  EXPECT_TRUE(a == content_of(scratch / "b/model.safetensors"));
  EXPECT_FALSE(a == content_of(scratch / "c/model.safetensors"));
}

TEST(Synth, SplitsIntoFiles) {
  const ScratchFolder scratch;
  ThreadPool pool(2);
  write_random_checkpoint({.config_file = moe_config, .out = scratch / "whole"}, pool);
  const SynthResult result =
      write_random_checkpoint({.config_file = moe_config, .out = scratch / "split/", .max_file_bytes = 400000}, pool);
  EXPECT_GE(result.files, 5);
  EXPECT_FALSE(std::filesystem::exists(scratch / "split/model.safetensors"));
  const Checkpoint whole = Checkpoint::open(scratch / "whole"), split = Checkpoint::open(scratch / "split");
  EXPECT_EQ(static_cast<std::int64_t>(split.files().size()), result.files);
  for (const SafetensorsFile& file : split.files()) EXPECT_LT(file.file_bytes(), 400000 + 20000);
  ASSERT_EQ(whole.tensors().size(), split.tensors().size());
  for (const StoredTensor& tensor : whole.tensors())
    EXPECT_EQ(values_of(whole, tensor.name), values_of(split, tensor.name)) << tensor.name;
}

TEST(Synth, LeavesExistingFoldersAlone) {
  const ScratchFolder scratch;
  ThreadPool pool(1);
  const auto write = [&](std::string_view out) {
    return [&, out] { write_random_checkpoint({.config_file = moe_config, .out = scratch / out}, pool); };
  };
  std::filesystem::create_directory(scratch / "full");
  scratch.file("full/note", "mine");
  expect_error(Status::invalid_argument, {"full: expected a new or empty folder, found one that holds something"},
               write("full"));
  scratch.file("file", "mine");
  expect_error(Status::invalid_argument, {"file: expected a new or empty folder, found a file"}, write("file"));
  expect_error(Status::io, {"absent/out", "cannot be created"}, write("absent/out"));
  EXPECT_EQ(scratch.entries(), 2);
  std::filesystem::create_directory(scratch / "empty");
  EXPECT_NO_THROW(write("empty")());
  EXPECT_TRUE(std::filesystem::exists(scratch / "empty/model.safetensors"));
}

TEST(Synth, FailuresLeaveNothing) {
  const ScratchFolder scratch;
  ThreadPool pool(2);
  SynthOptions options{.config_file = model_data / "config_bad/negative_hidden_size.json", .out = scratch / "model"};
  expect_error(Status::invalid_file, {"hidden_size"}, [&] { write_random_checkpoint(options, pool); });
  options.config_file = moe_config;
  const std::atomic<bool> cancelled{true};
  options.cancelled = &cancelled;
  expect_error(Status::cancelled, {"model: cancelled"}, [&] { write_random_checkpoint(options, pool); });
  options.cancelled = nullptr;
  options.on_progress = [](std::int64_t done, std::int64_t total) {
    EXPECT_LE(done, total);
    throw std::runtime_error("stop");
  };
  ThreadPool one(1);
  EXPECT_THROW(write_random_checkpoint(options, one), std::runtime_error);
  EXPECT_EQ(scratch.entries(), 0);
}

TEST(Synth, AFullDiskLeavesNothing) {
  const ScratchFolder scratch;
  ThreadPool pool(2);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::optional<Error> error =
      test::error_of([&] { write_random_checkpoint({.config_file = moe_config, .out = scratch / "model"}, pool); });
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status(), Status::io) << error->what();
  EXPECT_EQ(scratch.entries(), 0);
}

TEST(Synth, AModelLargerThanTheDiskIsRefusedAtOnce) {
  const ScratchFolder scratch;
  ThreadPool pool(1);
  std::string text = content_of(model_data / "reference/llama-gqa-f32/config.json");
  for (const auto& [from, to] : {std::pair{"\"intermediate_size\": 160", "\"intermediate_size\": 2000000000"},
                                 std::pair{"\"num_hidden_layers\": 3", "\"num_hidden_layers\": 7"}}) {
    text.replace(text.find(from), std::string_view(from).size(), to);
  }
  expect_error(Status::io, {"bytes of free disk space"}, [&] {
    write_random_checkpoint({.config_file = scratch.file("big.json", text), .out = scratch / "model"}, pool);
  });
  EXPECT_EQ(scratch.entries(), 1);
}

TEST(RandomWeights, PartsEqualTheWhole) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const RandomWeights weights(dtype, 0, 1);
    const std::size_t size = size_of(dtype);
    std::vector<std::byte> whole(1003 * size), part(99 * size);
    weights.fill(9, "x", 0, whole);
    weights.fill(9, "x", 400, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(400 * size)));
    weights.fill(9, "y", 400, part);
    EXPECT_FALSE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(400 * size)));
  }
}

// The empirical distribution stays within the Kolmogorov bound of the normal one (1e-6 significance: 2.7 / sqrt(n)).
TEST(RandomWeights, AreNormal) {
  const RandomWeights weights(DType::f32, 0, 1);
  std::vector<float> values(200000);
  weights.fill(1, "w", 0, std::as_writable_bytes(std::span(values)));
  std::sort(values.begin(), values.end());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double below = 0.5 * std::erfc(-values[i] / std::sqrt(2.0));
    worst = std::max(worst, std::abs(below - static_cast<double>(i) / 200000));
  }
  EXPECT_LT(worst, 2.7 / std::sqrt(200000.0));
}

}  // namespace
}  // namespace cermet
