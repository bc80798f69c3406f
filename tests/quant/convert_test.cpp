#include "quant/convert.hpp"

#include "tests/model/scratch.hpp"
#include "tests/quant/rounded_layers.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

ExportOptions to(ExportFormat format, bool allow_rounding = false) {
  ExportOptions options;
  options.format = format;
  options.allow_rounding = allow_rounding;
  return options;
}

/// Every tensor's type, shape and bytes, by name.
std::map<std::string, std::string> content(const std::filesystem::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  std::map<std::string, std::string> result;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    std::string bytes(static_cast<std::size_t>(tensor.bytes()), '\0');
    checkpoint.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
    result[tensor.name] = fmt::format("{}{}", name_of(tensor.dtype), shape_to_string(tensor.shape)) + bytes;
  }
  return result;
}

TEST(Convert, ThereAndBackIsTheSameCheckpoint) {
  for (const char* model : {"qwen3moe-bf16", "llama-gqa-f32", "mistral-window-bf16", "mixtral-bf16"}) {
    const ScratchFolder scratch;
    round_checkpoint(references / model, scratch / "a", Policy::standard());
    convert(scratch / "a", scratch / "slim", to(ExportFormat::modelslim));
    EXPECT_TRUE(std::filesystem::exists(scratch / "slim/quant_model_description.json"));
    EXPECT_EQ(content_of(scratch / "slim/config.json").find("quantization_config"), std::string::npos);
    const ConvertResult back = convert(scratch / "slim", scratch / "b", to(ExportFormat::compressed_tensors));
    EXPECT_EQ(content(scratch / "a"), content(scratch / "b")) << model;
    EXPECT_EQ(back.tensors, static_cast<std::int64_t>(content(scratch / "a").size()));
    for (const char* file : {"config.json", "cermet_quantization.json"})
      EXPECT_EQ(content_of(scratch / "a" / file), content_of(scratch / "b" / file)) << file;
  }
}

TEST(Convert, WhatTheTargetCannotHoldIsNamedAndNothingIsLeft) {
  const ScratchFolder scratch;
  round_checkpoint(references / "qwen2-bias-f16", scratch / "a", Policy::standard());
  const std::ptrdiff_t entries = scratch.entries();
  expect_error(Status::unsupported, {"q_proj.bias", "multiples of deq_scale"},
               [&] { convert(scratch / "a", scratch / "b", to(ExportFormat::modelslim)); });
  EXPECT_EQ(scratch.entries(), entries);
  round_checkpoint(references / "qwen3-qknorm-bf16", scratch / "fp8", Policy::uniform(*scheme_named("fp8_dynamic")));
  expect_error(Status::unsupported, {"q_proj", "ModelSlim", "fp8_dynamic"},
               [&] { convert(scratch / "fp8", scratch / "b", to(ExportFormat::modelslim)); });
  expect_error(Status::invalid_argument, {"not compressed-tensors yet"},
               [&] { convert(scratch / "a", scratch / "b", to(ExportFormat::compressed_tensors)); });
  expect_error(Status::invalid_argument, {"expected a quantized checkpoint"},
               [&] { convert(references / "qwen2-bias-f16", scratch / "b", to(ExportFormat::modelslim)); });
  expect_error(Status::invalid_argument, {"new or empty folder"},
               [&] { convert(scratch / "a", scratch / "fp8", to(ExportFormat::modelslim)); });
}

}  // namespace
}  // namespace cermet::test
