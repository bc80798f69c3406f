#include "model/checkpoint/checkpoint_report.hpp"

#include <cmath>
#include <limits>

#include "format/element.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::ScratchFolder;

/// A copy of a model's folder in which `edit` changes the list of tensors before zeros are written for all of them.
Checkpoint zeros_like(const ScratchFolder& scratch, const std::filesystem::path& model,
                      const std::function<void(std::vector<TensorSpec>&)>& edit) {
  scratch.file("config.json", content_of(model / "config.json"));
  std::vector<TensorSpec> specs;
  for (const ExpectedTensor& tensor : expected_tensors(load_config(model)))
    specs.push_back({tensor.name, load_config(model).dtype, tensor.shape});
  edit(specs);
  SafetensorsWriter writer(scratch / "model.safetensors", specs);
  for (std::size_t i = 0; i < specs.size(); ++i)
    writer.write(i, 0, std::vector<std::byte>(static_cast<std::size_t>(writer.bytes_of(i))));
  writer.commit();
  return Checkpoint::open(scratch.path());
}

TEST(CheckpointReport, DescribesTheDemoModel) {
  const CheckpointReport demo = report(Checkpoint::open(source / "models/demo"));
  EXPECT_EQ(demo.architecture, "Qwen3MoeForCausalLM");
  EXPECT_EQ(demo.tensors, 200);
  EXPECT_EQ(demo.parameters, 12730368);
  EXPECT_EQ(demo.active_parameters, 12730368 - 6 * 6 * 3 * 256 * 256);  // 6 of 8 experts rest in each of 6 layers
  EXPECT_EQ(demo.bytes, 2 * 12730368);
  ASSERT_EQ(demo.files.size(), 2u);
  EXPECT_EQ(demo.files[1].name, "model-00002-of-00002.safetensors");
  EXPECT_EQ(demo.files[1].bytes, 10644776);
  ASSERT_EQ(demo.storage.size(), 1u);
  EXPECT_EQ(demo.storage[0].dtype, DType::bf16);
  EXPECT_EQ(demo.storage[0].elements, 12730368);
  EXPECT_TRUE(demo.problems.empty());
  EXPECT_TRUE(demo.warnings.empty());
}

TEST(CheckpointReport, ListsWhatIsMissingOrMisshapen) {
  const ScratchFolder scratch;
  const Checkpoint checkpoint = zeros_like(scratch, small_model, [](std::vector<TensorSpec>& specs) {
    specs.erase(specs.begin());            // model.embed_tokens.weight
    specs[1].shape = {specs[1].shape[0]};  // a projection without its second dimension
    specs[2].dtype = DType::i8;
    specs[3].dtype = DType::bf16;
  });
  const CheckpointReport found = report(checkpoint);
  ASSERT_EQ(found.problems.size(), 3u);
  EXPECT_NE(found.problems[0].find("expected the tensor \"model.embed_tokens.weight\" of shape [320, 96], found none"),
            std::string::npos);
  EXPECT_NE(found.problems[1].find("\"model.layers.0.self_attn.q_proj.weight\": expected shape [96, 96], found [96]"),
            std::string::npos);
  EXPECT_NE(found.problems[2].find("found i8"), std::string::npos);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(found.warnings[0], "1 tensors: expected f32 as config.json states, found another type");
  EXPECT_EQ(found.storage.size(), 3u);
}

TEST(CheckpointReport, WarnsOfTensorsThatNothingReads) {
  const std::filesystem::path tied = source / "tests/model/data/reference/llama-rope-scaled-bf16";
  const ScratchFolder scratch;
  const Checkpoint checkpoint = zeros_like(scratch, tied, [](std::vector<TensorSpec>& specs) {
    specs.push_back({"lm_head.weight", DType::bf16, {320, 96}});                         // tied: a second copy
    specs.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {8}});  // computed
    specs.push_back({"model.layers.0.self_attn.q_proj.bias", DType::bf16, {96}});
  });
  const CheckpointReport found = report(checkpoint);
  EXPECT_TRUE(found.problems.empty());
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find(
                "\"model.layers.0.self_attn.q_proj.bias\": expected no tensor of this name, found BF16[96]"),
            std::string::npos);
}

TEST(CheckpointCheck, ReadsEverythingAndCountsNonFiniteValues) {
  const ScratchFolder scratch;
  scratch.file("config.json", content_of(small_model / "config.json"));
  std::string bytes = content_of(small_model / "model.safetensors");
  const Checkpoint original = Checkpoint::open(small_model);
  const auto plant = [&](std::string_view name, std::int64_t element, float value) {
    const std::int64_t data_begin = static_cast<std::int64_t>(bytes.size()) - original.total_bytes();
    std::memcpy(bytes.data() + data_begin + original.find(name)->begin + 4 * element, &value, sizeof value);
  };
  plant("lm_head.weight", 0, std::numeric_limits<float>::quiet_NaN());
  plant("lm_head.weight", 30719, -std::numeric_limits<float>::quiet_NaN());
  plant("lm_head.weight", 17, std::numeric_limits<float>::infinity());
  plant("model.norm.weight", 5, -std::numeric_limits<float>::infinity());
  scratch.file("model.safetensors", bytes);
  ThreadPool pool(2);
  std::int64_t reported = 0;
  const CheckpointCheck found = check(Checkpoint::open(scratch.path()), pool,
                                      {.on_progress = [&](std::int64_t done, std::int64_t) { reported = done; }});
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found.bytes_read, original.total_bytes());
  EXPECT_EQ(reported, original.total_bytes());  // the last call says that all is done
  ASSERT_EQ(found.non_finite.size(), 2u);
  EXPECT_EQ(found.non_finite[0].tensor, "lm_head.weight");
  EXPECT_EQ(found.non_finite[0].file, "model.safetensors");
  EXPECT_EQ(found.non_finite[0].nan, 2);
  EXPECT_EQ(found.non_finite[0].infinite, 1);
  EXPECT_EQ(found.non_finite[1].tensor, "model.norm.weight");
  EXPECT_EQ(found.non_finite[1].infinite, 1);
  EXPECT_TRUE(check(original, pool).non_finite.empty());
}

TEST(CheckpointCheck, CanBeCancelled) {
  ThreadPool pool(2);
  const std::atomic<bool> cancelled{true};
  test::expect_error(Status::cancelled, {"cancelled"},
                     [&] { check(Checkpoint::open(small_model), pool, {.cancelled = &cancelled}); });
}

// Every bit pattern of the small types, and random ones of the large, against the decoder.
TEST(CountNonFinite, AgreesWithTheDecoder) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(name_of(dtype));
    const std::size_t size = size_of(dtype);
    std::vector<std::byte> bytes(65536 * size);
    for (std::size_t e = 0; e < 65536; ++e) {  // the upper 16 bits run through all values; lower ones are 0 or 1
      for (std::size_t b = 0; b < size; ++b)
        bytes[e * size + b] = b + 2 >= size ? static_cast<std::byte>(e >> (8 * (b + 2 - size)))
                                            : static_cast<std::byte>(b == 0 && e % 3 == 0);
      if (size == 1) bytes[e] = static_cast<std::byte>(e);
    }
    NonFiniteCount expected;
    for (std::int64_t e = 0; e < 65536; ++e) {
      const double value = format::load_element(bytes.data(), dtype, e);
      expected.nan += std::isnan(value);
      expected.infinite += std::isinf(value);
    }
    const NonFiniteCount found = count_non_finite(dtype, bytes);
    EXPECT_EQ(found.nan, expected.nan);
    EXPECT_EQ(found.infinite, expected.infinite);
    EXPECT_EQ(is_floating(dtype), found.nan > 0);
  }
}

}  // namespace
}  // namespace cermet
