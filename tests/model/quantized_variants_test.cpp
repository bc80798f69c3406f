// Quantized checkpoints whose descriptors and scales are spelled as the readers of compressed-tensors take them.
#include "tests/model/checkpoint_edits.hpp"

#include "model/checkpoint/checkpoint.hpp"

namespace cermet {
namespace {

using test::EditedCase;
using test::EditedTensor;
using test::ScratchFolder;
using Edit = std::function<void(EditedCase&)>;

JsonValue& group_of(EditedCase& edited) { return edited.config["quantization_config"]["config_groups"]["group_0"]; }

/// Sets or, where the text is null, takes away fields of weights and inputs.
Edit arguments(std::vector<std::pair<const char*, const char*>> fields, bool of_inputs = true) {
  return [=](EditedCase& edited) {
    for (const char* part : {"weights", "input_activations"}) {
      if (!of_inputs && part == std::string_view("input_activations")) continue;
      for (const auto& [key, json] : fields) {
        if (json) group_of(edited)[part][key] = *JsonValue::parse(json);
        else group_of(edited)[part].erase(key);
      }
    }
  };
}

Edit descriptor(const char* key, const char* json) {
  return [=](EditedCase& edited) {
    if (json) edited.config["quantization_config"][key] = *JsonValue::parse(json);
    else edited.config["quantization_config"].erase(key);
  };
}

Edit scales(std::vector<std::int64_t> shape) {
  return [=](EditedCase& edited) {
    for (auto& [name, tensor] : edited.tensors)
      if (name.ends_with("weight_scale"))
        tensor = tensor.reshaped(shape.empty() && tensor.elements() > 1 ? std::vector{tensor.elements()} : shape);
  };
}

/// Weights as real numbers again, rounded or not, beside their scales.
Edit real_weights(double offset) {
  return [=](EditedCase& edited) {
    for (auto& [name, tensor] : edited.tensors) {
      const auto scale = edited.tensors.find(name + "_scale");
      if (scale == edited.tensors.end()) continue;
      const EditedTensor codes = tensor;
      tensor = tensor.as(DType::f32);
      for (std::int64_t i = 0; i < tensor.elements(); ++i)
        format::store_element(tensor.bytes.data(), DType::f32, i,
                              (codes.value(i) + offset) * scale->second.value(i / tensor.shape[1]));
    }
    edited.config["quantization_config"]["format"] = "dense";
    edited.config["quantization_config"]["quantization_status"] = "frozen";
  };
}

Edit packed(std::string_view of) {
  return [=](EditedCase& edited) {
    test::EditedTensors made;
    for (auto& [name, tensor] : edited.tensors) {
      if (tensor.dtype != DType::i8 || name.find(of) == std::string::npos) {
        made[name] = tensor;
        continue;
      }
      for (std::byte& code : tensor.bytes) code ^= std::byte{0x80};
      const std::int64_t shape[] = {tensor.shape[0], tensor.shape[1]};
      const auto bytes = std::as_bytes(std::span(shape));
      made[name + "_packed"] = {DType::i32, {shape[0], shape[1] / 4}, tensor.bytes};
      made[name + "_shape"] = {DType::i64, {2}, {bytes.begin(), bytes.end()}};
    }
    edited.tensors = made;
    JsonValue group = group_of(edited);
    group["format"] = "pack-quantized";
    group["targets"] = *JsonValue::parse(fmt::format("[\"re:.*{}.*\"]", of));
    edited.config["quantization_config"]["config_groups"]["packed"] = group;
    edited.config["quantization_config"]["format"] = "mixed-precision";
  };
}

struct QuantizedVariant {
  const char* name;
  const char* base;
  Edit edit;
};

std::vector<QuantizedVariant> quantized_variants() {
  const char *int8 = "no_format", *per_tensor = "tensor_1_1", *fp8 = "dyn_tensor", *qwen3_moe = "w8a8_dyn_qwen3_moe",
             *mixtral = "mixtral_v5_names";
  return {
      {"flat_scales", int8, scales({})},
      {"one_scale_of_rank_0", per_tensor,
       [](EditedCase& edited) {
         for (auto& [name, tensor] : edited.tensors)
           if (name.ends_with("weight_scale")) tensor.shape.clear();
       }},
      {"one_scale_of_rank_1", per_tensor, scales({1})},
      {"scales_in_f64", int8,
       [](EditedCase& edited) {
         for (auto& [name, tensor] : edited.tensors)
           if (name.ends_with("weight_scale")) tensor = tensor.as(DType::f64);
       }},
      {"initialized", int8, descriptor("quantization_status", "\"initialized\"")},
      {"calibration", int8, descriptor("quantization_status", "\"calibration\"")},
      {"no_status", int8, descriptor("quantization_status", nullptr)},
      {"dense_format", int8, descriptor("format", "\"dense\"")},
      {"naive_format", int8, descriptor("format", "\"naive-quantized\"")},
      {"format_of_the_group", int8, [](EditedCase& edited) { group_of(edited)["format"] = "int-quantized"; }},
      {"no_method", int8, descriptor("quant_method", nullptr)},
      {"sparseml", int8, descriptor("quant_method", "\"sparseml\"")},
      {"older_key", int8,
       [](EditedCase& edited) {
         edited.config["compression_config"] = edited.config["quantization_config"];
         edited.config.erase("quantization_config");
       }},
      {"nested", int8,
       [](EditedCase& edited) {
         const JsonValue inner = edited.config["quantization_config"];
         edited.config["quantization_config"] = {{"quant_method", "compressed-tensors"},
                                                 {"quantization_config", inner},
                                                 {"sparsity_config", JsonValue::object()}};
       }},
      {"defaults", int8,
       arguments({{"num_bits", nullptr},
                  {"type", nullptr},
                  {"symmetric", nullptr},
                  {"observer", nullptr},
                  {"observer_kwargs", nullptr},
                  {"actorder", nullptr},
                  {"group_size", nullptr},
                  {"block_structure", nullptr}})},
      {"upper_case", int8, arguments({{"type", "\"INT\""}})},
      {"channels_by_group_size", int8, arguments({{"strategy", nullptr}, {"group_size", "-1"}}, false)},
      {"tensor_by_default", fp8, arguments({{"strategy", nullptr}})},
      {"order_of_columns", int8, arguments({{"actorder", "\"weight\""}}, false)},
      {"inputs_per_tensor", int8,
       [](EditedCase& edited) { group_of(edited)["input_activations"]["strategy"] = "tensor"; }},
      {"empty_outputs", int8, [](EditedCase& edited) { group_of(edited)["output_activations"] = JsonValue::object(); }},
      {"preset", int8,
       [](EditedCase& edited) {
         edited.config["quantization_config"]["config_groups"] = *JsonValue::parse(R"({"W8A8": ["Linear"]})");
       }},
      {"preset_of_fp8", fp8,
       [](EditedCase& edited) {
         edited.config["quantization_config"]["config_groups"] = *JsonValue::parse(R"({"FP8_DYNAMIC": ["Linear"]})");
       }},
      {"targets_by_name", int8,
       [](EditedCase& edited) {
         JsonValue targets = JsonValue::array();
         for (const auto& [name, tensor] : edited.tensors)
           if (tensor.dtype == DType::i8) targets.push_back(name.substr(0, name.rfind('.')));
         group_of(edited)["targets"] = targets;
         edited.config["quantization_config"]["ignore"] = nullptr;
       }},
      {"targets_of_python", int8,
       [](EditedCase& edited) {
         group_of(edited)["targets"] = *JsonValue::parse(
             R"(["re:(?i)MODEL\\.layers\\.(?P<layer>\\d+)\\.(?:self_attn|mlp)\\.(?!lm_head)\\w+\\Z"])");
       }},
      {"groups_that_share", int8,
       [](EditedCase& edited) {
         JsonValue second = group_of(edited);
         second["targets"] = *JsonValue::parse(R"(["re:.*mlp.*"])");
         edited.config["quantization_config"]["config_groups"]["group_1"] = second;
       }},
      {"head_that_is_real_and_not_ignored", int8, descriptor("ignore", "[]")},
      {"routers_that_are_ignored", qwen3_moe,
       descriptor("ignore", R"(["lm_head", "re:.*mlp.gate$", "model.layers.0.mlp.gate"])")},
      {"routers_under_their_other_name", mixtral,
       descriptor("ignore", R"(["lm_head", "re:.*block_sparse_moe\\.gate$"])")},
      {"rounded_real_weights", int8, real_weights(0)},
      {"real_weights", int8, real_weights(0.3)},
      {"packed_experts", qwen3_moe, packed("experts")},
      {"packed_attention", int8, packed("self_attn")},
      {"packed_experts_of_mixtral", mixtral, packed("experts")},
  };
}

class QuantizedVariants : public testing::TestWithParam<QuantizedVariant> {};

TEST_P(QuantizedVariants, GiveTheSameLogits) {
  const std::vector<float> expected = EditedCase(GetParam().base).logits();
  EditedCase edited(GetParam().base);
  GetParam().edit(edited);
  EXPECT_EQ(test::largest_difference(edited.logits(), expected), 0);
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedVariants, testing::ValuesIn(quantized_variants()),
                         [](const auto& test) { return test.param.name; });

/// Experts that transformers 5 holds in one tensor are no linear modules, so that "Linear" does not name them.
TEST(QuantizedTensors, StackedExpertsStayReal) {
  EditedCase real("moe_fused_v5"), edited("moe_fused_v5");
  for (EditedCase* both : {&real, &edited}) {
    both->config["quantization_config"] = EditedCase("w8a8_dyn_qwen3_moe").config["quantization_config"];
    for (auto& [name, tensor] : EditedCase("w8a8_dyn_qwen3_moe").tensors)
      if (name.find("self_attn") != std::string::npos) both->tensors[name] = tensor;
  }
  group_of(real)["targets"] = *JsonValue::parse(R"(["re:.*self_attn.*"])");
  EXPECT_EQ(test::largest_difference(edited.logits(), real.logits()), 0);
}

TEST(QuantizedTensors, ProjectionsWithoutScalesAreRefused) {
  EditedCase edited("no_format");
  edited.tensors["model.layers.0.mlp.up_proj.weight"] =
      edited.tensors["model.layers.0.mlp.up_proj.weight"].as(DType::f32);
  edited.tensors.erase("model.layers.0.mlp.up_proj.weight_scale");
  test::expect_error(Status::unsupported, {"\"model.layers.0.mlp.up_proj.weight\": expected i8, found f32"},
                     [&] { edited.logits(); });
}

}  // namespace
}  // namespace cermet
