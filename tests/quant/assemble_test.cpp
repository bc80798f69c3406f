#include "quant/assemble.hpp"

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "model/checkpoint/compressed_tensors.hpp"
#include "tests/model/scratch.hpp"
#include "tests/quant/rounded_layers.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

const std::filesystem::path mixture = references / "qwen3moe-bf16", dense = references / "qwen2-bias-f16";

nlohmann::json json_of(const std::filesystem::path& file) { return nlohmann::json::parse(content_of(file)); }

TEST(Assemble, HasEveryTensorOfTheSourceAndOfItsSchemes) {
  const ScratchFolder scratch;
  round_checkpoint(mixture, scratch / "out", Policy::standard());
  const SafetensorsFile file = SafetensorsFile::open(scratch / "out/model.safetensors");
  std::set<std::string> expected, found;
  const ModelConfig config = load_config(mixture);
  for (const ExpectedTensor& tensor : expected_tensors(config)) expected.insert(tensor.name);
  for (const LinearModule& module : linear_modules(config)) {
    const LinearScheme scheme = Policy::standard().scheme_of(module.name);
    if (scheme == LinearScheme{}) continue;
    expected.insert(module.name + ".weight_scale");
    if (scheme.input == LinearScheme::Input::fixed) expected.insert(module.name + ".input_scale");
    const bool packed = module.expert >= 0;  // four values to an int32, with the shape that they have
    const StoredTensor* weight = file.find(module.name + (packed ? ".weight_packed" : ".weight"));
    ASSERT_NE(weight, nullptr) << module.name;
    EXPECT_EQ(weight->dtype, packed ? DType::i32 : DType::i8);
    if (!packed) continue;
    expected.erase(module.name + ".weight");
    expected.insert({module.name + ".weight_packed", module.name + ".weight_shape"});
  }
  for (const StoredTensor& tensor : file.tensors()) found.insert(tensor.name);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(std::filesystem::exists(scratch / "out/result"));
  EXPECT_TRUE(QuantizationRecord::read(scratch / "out").has_value());
}

TEST(Assemble, ShardsHaveTheSameTensorsAndAnIndex) {
  const ScratchFolder scratch;
  ExportOptions options;
  round_checkpoint(mixture, scratch / "one", Policy::standard());
  options.shards.max_file_bytes = 60'000;
  round_checkpoint(mixture, scratch / "many", Policy::standard(), options);
  const SafetensorsFile whole = SafetensorsFile::open(scratch / "one/model.safetensors");
  const nlohmann::json index = json_of(scratch / "many/model.safetensors.index.json");
  EXPECT_EQ(index["weight_map"].size(), whole.tensors().size());
  std::int64_t total = 0;
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    const SafetensorsFile shard = SafetensorsFile::open(scratch / "many" / file.get<std::string>());
    const StoredTensor *a = whole.find(name), *b = shard.find(name);
    ASSERT_TRUE(a && b) << name;
    std::vector<std::byte> left(static_cast<std::size_t>(a->bytes())), right(static_cast<std::size_t>(b->bytes()));
    whole.read(*a, 0, left);
    shard.read(*b, 0, right);
    EXPECT_EQ(left, right) << name;
    total += a->bytes();
    files.insert(file.get<std::string>());
  }
  EXPECT_EQ(index["metadata"]["total_size"], total);
  EXPECT_GT(files.size(), 2u);
  EXPECT_TRUE(files.contains(fmt::format("model-00001-of-{:05}.safetensors", files.size())));
}

TEST(Assemble, TellsWhatIsMissingAndStartsAnew) {
  const ScratchFolder scratch;
  const std::filesystem::path working = scratch / "out.partial", layer = layer_file(working, 1);
  write_rounded_layers(mixture, working, Policy::standard());
  std::filesystem::rename(layer, scratch / "layer");
  expect_error(Status::io, {layer.string()}, [&] { assemble(mixture, working, record_of(Policy::standard()), {}); });
  std::filesystem::rename(scratch / "layer", layer);
  std::filesystem::create_directory(working / "result");
  scratch.file("out.partial/result/stale", "x");
  EXPECT_FALSE(std::filesystem::exists(assemble(mixture, working, record_of(Policy::standard()), {}) / "stale"));
}

TEST(CompressedTensors, GroupsOfTheDefaultPolicy) {
  const std::vector<LinearModule> modules = linear_modules(load_config(mixture));
  const nlohmann::json config =
      nlohmann::json::parse(compressed_tensors_config(modules, scheme_map(Policy::standard(), modules)).dump());
  EXPECT_EQ(config["quant_method"], "compressed-tensors");
  EXPECT_EQ(config["format"], "mixed-precision");
  EXPECT_EQ(config["quantization_status"], "compressed");
  const nlohmann::json& fixed = config["config_groups"]["group_0"];
  EXPECT_EQ(fixed["targets"][0], "re:model\\.layers\\.\\d+\\.self_attn\\.q_proj$");
  EXPECT_EQ(fixed["weights"]["strategy"], "channel");
  EXPECT_EQ(fixed["format"], "int-quantized");
  EXPECT_EQ(fixed["input_activations"]["strategy"], "tensor");
  EXPECT_EQ(fixed["input_activations"]["dynamic"], false);
  const nlohmann::json& dynamic = config["config_groups"]["group_1"];
  EXPECT_EQ(dynamic["targets"][0], "re:model\\.layers\\.\\d+\\.mlp\\.experts\\.\\d+\\.gate_proj$");
  EXPECT_EQ(dynamic["format"], "pack-quantized");  // what transformers 5 reads of experts
  EXPECT_EQ(dynamic["input_activations"]["strategy"], "token");
  EXPECT_EQ(config["ignore"][0], "model.layers.0.mlp.gate");
}

TEST(CompressedTensors, OneSchemeTargetsEveryLinear) {
  const std::vector<LinearModule> modules = linear_modules(load_config(dense));
  const nlohmann::json config = nlohmann::json::parse(
      compressed_tensors_config(modules, scheme_map(Policy::uniform(*scheme_named("fp8_dynamic")), modules)).dump());
  EXPECT_EQ(config["format"], "float-quantized");
  EXPECT_EQ(config["config_groups"]["group_0"]["targets"], std::vector<std::string>{"Linear"});
  EXPECT_EQ(config["config_groups"]["group_0"]["weights"]["type"], "float");
  EXPECT_EQ(config["ignore"], std::vector<std::string>{"lm_head"});
  expect_error(Status::invalid_argument, {"other than 16bit"}, [&] { compressed_tensors_config(modules, {}); });
}

TEST(CompressedTensors, PatternsMatchTheModulesOfTheSchemeAndNoOther) {
  const std::vector<LinearModule> modules = linear_modules(load_config(mixture));
  const Policy policy = Policy::parse(
      "*.gate = 16bit\n*.0.*.experts.* = w8a8_dynamic\n*.experts.* = w8a16\n*.1.self_attn.o_proj = 16bit\n*layers* = "
      "w8a8_static\n",
      "p");
  const SchemeMap schemes = scheme_map(policy, modules);
  const nlohmann::json config = nlohmann::json::parse(compressed_tensors_config(modules, schemes).dump());
  for (const LinearModule& module : modules) {
    std::vector<std::string> groups;
    for (const auto& [name, group] : config["config_groups"].items())
      for (const std::string target : group["targets"]) {
        if (target != module.name &&
            !(target.starts_with("re:") && std::regex_search(module.name, std::regex("^" + target.substr(3)))))
          continue;
        groups.push_back(group["input_activations"].is_null()    ? "w8a16"
                         : group["input_activations"]["dynamic"] ? "w8a8_dynamic"
                                                                 : "w8a8_static");
      }
    const std::string_view scheme = name_of(policy.scheme_of(module.name));
    const bool ignored =
        std::find(config["ignore"].begin(), config["ignore"].end(), module.name) != config["ignore"].end();
    EXPECT_EQ(ignored, scheme == "16bit") << module.name;
    if (scheme == "16bit") EXPECT_EQ(groups.size(), 0u) << module.name;
    else EXPECT_EQ(groups, std::vector<std::string>{std::string(scheme)}) << module.name;
  }
}

}  // namespace
}  // namespace cermet::test
