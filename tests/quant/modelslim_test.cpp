#include "model/checkpoint/modelslim.hpp"
#include "model/checkpoint/modelslim_tensors.hpp"

#include <nlohmann/json.hpp>

#include "tests/model/scratch.hpp"
#include "tests/quant/rounded_layers.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

/// A rounded checkpoint, its tensors and what they mean.
struct Rounded {
  Rounded(const std::string& model, const Policy& policy)
      : config(load_config(references / model)), modules(linear_modules(config)) {
    schemes = scheme_map(policy, modules);
    ExportOptions plain;
    plain.pack_experts = false;  // as this descriptor has them
    round_checkpoint(references / model, scratch / "out", policy, plain);
    file.emplace(SafetensorsFile::open(scratch / "out/model.safetensors"));
    for (const StoredTensor& tensor : file->tensors()) tensors.push_back(copy_of(*file, tensor));
  }

  ScratchFolder scratch;
  ModelConfig config;
  std::vector<LinearModule> modules;
  SchemeMap schemes;
  std::optional<SafetensorsFile> file;
  std::vector<OutputTensor> tensors;
};

std::map<std::string, std::pair<std::string, std::vector<std::byte>>> bytes_by_name(
    const std::vector<OutputTensor>& tensors) {
  std::map<std::string, std::pair<std::string, std::vector<std::byte>>> result;
  for (const OutputTensor& tensor : tensors) {
    std::vector<std::byte> bytes = tensor.bytes;
    if (tensor.file) {
      bytes.resize(static_cast<std::size_t>(tensor.size()));
      tensor.file->read(*tensor.stored, 0, bytes);
    }
    result[tensor.spec.name] = {fmt::format("{}{}", name_of(tensor.spec.dtype), shape_to_string(tensor.spec.shape)),
                                std::move(bytes)};
  }
  return result;
}

OutputTensor* find(std::vector<OutputTensor>& tensors, const std::string& name) {
  for (OutputTensor& tensor : tensors)
    if (tensor.spec.name == name) return &tensor;
  return nullptr;
}

TEST(ModelSlim, ThereAndBackIsTheSameBytes) {
  for (const char* model : {"qwen3moe-bf16", "llama-bias-mha-f16", "llama-gqa-f32", "mixtral-bf16"}) {
    Rounded rounded(model, Policy::standard());
    if (std::string_view(model) == "llama-bias-mha-f16") {  // biases that deq_scale does not divide: see RefusesBiases
      for (OutputTensor& tensor : rounded.tensors)
        if (tensor.spec.name.ends_with(".bias")) {
          tensor.bytes.assign(static_cast<std::size_t>(tensor.size()), std::byte{0});
          tensor.file = nullptr;
        }
    }
    std::vector<OutputTensor> slim = to_modelslim(rounded.tensors, rounded.modules, rounded.schemes);
    const std::vector<OutputTensor> back = from_modelslim(slim, rounded.modules, rounded.schemes, rounded.config.dtype);
    auto expected = bytes_by_name(rounded.tensors), found = bytes_by_name(back);
    if (std::string_view(model) == "llama-bias-mha-f16") {  // a bias of zeros is none in the descriptor
      for (const LinearModule& module : rounded.modules) expected.erase(module.name + ".bias");
    }
    EXPECT_EQ(expected, found) << model;
  }
}

TEST(ModelSlim, TensorsOfAFixedInput) {
  Rounded rounded("qwen3moe-bf16", Policy::standard());
  std::vector<OutputTensor> slim = to_modelslim(rounded.tensors, rounded.modules, rounded.schemes);
  const std::string module = "model.layers.0.self_attn.q_proj";
  EXPECT_EQ(find(slim, module + ".weight_scale"), nullptr);
  for (const auto& [suffix, dtype] : {std::pair{".weight", DType::i8},
                                      {".input_scale", DType::bf16},
                                      {".input_offset", DType::bf16},
                                      {".deq_scale", DType::f32},
                                      {".quant_bias", DType::i32}}) {
    const OutputTensor* tensor = find(slim, module + suffix);
    ASSERT_NE(tensor, nullptr) << suffix;
    EXPECT_EQ(tensor->spec.dtype, dtype) << suffix;
  }
  const nlohmann::json description = nlohmann::json::parse(modelslim_description(slim, rounded.schemes).dump());
  EXPECT_EQ(description[module + ".deq_scale"], "W8A8");
  EXPECT_EQ(description["model.layers.0.mlp.experts.3.up_proj.weight_offset"], "W8A8_DYNAMIC");
  EXPECT_EQ(description["model.layers.0.mlp.gate.weight"], "FLOAT");
  EXPECT_EQ(description["model.embed_tokens.weight"], "FLOAT");
  EXPECT_EQ(description.size(), slim.size() + 1);
}

TEST(ModelSlim, WeightsAlone) {
  Rounded rounded("qwen3-qknorm-bf16", Policy::uniform(*scheme_named("w8a16")));
  const std::vector<OutputTensor> slim = to_modelslim(rounded.tensors, rounded.modules, rounded.schemes);
  const nlohmann::json description = nlohmann::json::parse(modelslim_description(slim, rounded.schemes).dump());
  EXPECT_EQ(description["model_quant_type"], "W8A16");
  EXPECT_EQ(description["model.layers.0.mlp.up_proj.weight_offset"], "W8A16");
  EXPECT_EQ(bytes_by_name(from_modelslim(slim, rounded.modules, rounded.schemes, rounded.config.dtype)),
            bytes_by_name(rounded.tensors));
}

TEST(ModelSlim, RefusesBiases) {
  Rounded rounded("qwen2-bias-f16", Policy::standard());
  expect_error(Status::unsupported, {"q_proj.bias", "multiples of deq_scale"},
               [&] { to_modelslim(rounded.tensors, rounded.modules, rounded.schemes); });
  std::vector<std::string> rounded_names;
  std::vector<OutputTensor> slim = to_modelslim(rounded.tensors, rounded.modules, rounded.schemes, &rounded_names);
  EXPECT_EQ(rounded_names.size(), static_cast<std::size_t>(3 * rounded.config.layers));
  const OutputTensor* deq = find(slim, "model.layers.0.self_attn.q_proj.deq_scale");
  ASSERT_NE(deq, nullptr);
  EXPECT_EQ(deq->spec.dtype, DType::i64);  // float16 activations
}

TEST(ModelSlim, RefusesWhatItHasNoWordFor) {
  for (const char* scheme : {"fp8_weight_only", "fp8_dynamic"}) {
    Rounded rounded("qwen3-qknorm-bf16", Policy::uniform(*scheme_named(scheme)));
    expect_error(Status::unsupported, {"model.layers.0.self_attn.q_proj", "w8a8_static", scheme},
                 [&] { to_modelslim(rounded.tensors, rounded.modules, rounded.schemes); });
  }
}

TEST(ModelSlim, RefusesScalesThatWouldNotComeBack) {
  Rounded rounded("qwen3-qknorm-bf16", Policy::standard());
  std::vector<OutputTensor> slim = to_modelslim(rounded.tensors, rounded.modules, rounded.schemes);
  const std::string module = "model.layers.1.mlp.down_proj";
  const auto back = [&] { from_modelslim(slim, rounded.modules, rounded.schemes, DType::bf16); };
  OutputTensor* offset = find(slim, module + ".input_offset");
  format::store_element(offset->bytes.data(), DType::bf16, 0, 3);
  expect_error(Status::unsupported, {module + ".input_offset", "expected 0", "found 3"}, back);
  format::store_element(offset->bytes.data(), DType::bf16, 0, 0);
  // An input scale whose multiples skip float32 values, and a product between them.
  OutputTensor* input = find(slim, module + ".input_scale");
  input->file = nullptr;
  input->spec.dtype = DType::f32;
  input->bytes.resize(4);
  format::store_element(input->bytes.data(), DType::f32, 0, 1.9);
  OutputTensor* deq = find(slim, module + ".deq_scale");
  bool refused = false;
  for (int i = 0; i < 64 && !refused; ++i) {
    format::store_element(deq->bytes.data(), DType::f32, 0, 1.95 + i * 1.1920928955078125e-07);
    refused = error_of(back).has_value();
  }
  ASSERT_TRUE(refused);
  expect_error(Status::unsupported, {module + ".deq_scale", "products of input_scale"}, back);
}

}  // namespace
}  // namespace cermet::test
