// The same tensors under the names, in the types and in the files that tools leave them.
#include "tests/model/checkpoint_edits.hpp"

#include <regex>

#include "model/checkpoint/checkpoint.hpp"

namespace cermet {
namespace {

using test::EditedCase;
using test::EditedTensor;
using test::ScratchFolder;
using Edit = std::function<void(EditedCase&)>;

/// Takes "model." off and puts `model` before the rest, and `head` before the head.
Edit wrapped(std::string model, std::string head) {
  return [=](EditedCase& edited) {
    edited.rename(
        [&](const std::string& name) { return name.starts_with("model.") ? model + name.substr(6) : head + name; });
  };
}

/// A layer's experts in one tensor.
void stack_experts(EditedCase& edited, const std::string& block, const std::vector<std::string>& modules,
                   const std::string& name) {
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.{}.experts.", layer, block);
    EditedTensor stack;
    for (int expert = 0; expert < 4; ++expert)
      for (const std::string& module : modules) {
        const auto found = edited.tensors.find(fmt::format("{}{}.{}.weight", prefix, expert, module));
        ASSERT_NE(found, edited.tensors.end());
        stack.bytes.insert(stack.bytes.end(), found->second.bytes.begin(), found->second.bytes.end());
        stack.shape = {4, static_cast<std::int64_t>(modules.size()) * found->second.shape[0], found->second.shape[1]};
        edited.tensors.erase(found);
      }
    edited.tensors[prefix + name] = stack;
  }
}

std::string replaced(const std::string& name, const char* pattern, const char* by) {
  return std::regex_replace(name, std::regex(pattern), by);
}

struct TensorVariant {
  const char* name;
  const char* base;
  Edit edit;
};

std::vector<TensorVariant> tensor_variants() {
  const char *llama = "bos_out", *mixtral = "moe_mixtral_v5_names", *qwen2 = "tie_true_other_head";
  const Edit own_mixtral_names = [](EditedCase& edited) {
    edited.rename([](const std::string& name) {
      std::string own = replaced(name, "\\.mlp\\.(gate\\.weight|experts)", ".block_sparse_moe.$1");
      own = replaced(own, "(experts\\.\\d+)\\.gate_proj", "$1.w1");
      own = replaced(own, "(experts\\.\\d+)\\.up_proj", "$1.w3");
      return replaced(own, "(experts\\.\\d+)\\.down_proj", "$1.w2");
    });
  };
  return {
      {"base_model", llama, wrapped("", "")},
      {"merged_adapter", llama, wrapped("base_model.model.model.", "base_model.model.")},
      {"compiled", llama, wrapped("_orig_mod.model.", "_orig_mod.")},
      {"data_parallel", llama, wrapped("module.model.", "module.")},
      {"language_model", llama, wrapped("language_model.model.", "language_model.")},
      {"language_model_inside", llama, wrapped("model.language_model.", "")},
      {"tensors_nobody_reads", llama,
       [](EditedCase& edited) {
         for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq",
                                  "model.layers.1.self_attn.masked_bias", "model.rotary_emb.inv_freq", "score.weight"})
           edited.tensors[name] = {DType::f32, {4}, std::vector<std::byte>(16)};
         edited.tensors["num_batches_tracked"] = {DType::i64, {}, std::vector<std::byte>(8)};
       }},
      {"all_in_f64", llama,
       [](EditedCase& edited) {
         for (auto& [name, tensor] : edited.tensors) tensor = tensor.as(DType::f64);
       }},
      {"own_mixtral_names", mixtral, own_mixtral_names},
      {"mixed_mixtral_names", mixtral,
       [](EditedCase& edited) {
         edited.rename([](const std::string& name) { return replaced(name, "(experts\\.\\d+)\\.up_proj", "$1.w3"); });
       }},
      {"stacked_mixtral", mixtral,
       [](EditedCase& edited) {
         stack_experts(edited, "mlp", {"gate_proj", "up_proj"}, "gate_up_proj");
         stack_experts(edited, "mlp", {"down_proj"}, "down_proj");
       }},
      {"stacked_mixtral_under_its_own_block", mixtral,
       [=](EditedCase& edited) {
         own_mixtral_names(edited);
         stack_experts(edited, "block_sparse_moe", {"w1", "w3"}, "gate_up_proj");
         stack_experts(edited, "block_sparse_moe", {"w2"}, "down_proj");
       }},
      {"stacked_with_weight", "moe_fused_v5",
       [](EditedCase& edited) {
         edited.rename([](const std::string& name) { return name.ends_with("_proj") ? name + ".weight" : name; });
       }},
      {"tie_said_of_a_head_of_its_own", qwen2, [](EditedCase& edited) { edited.set("tie_word_embeddings", "false"); }},
  };
}

class TensorVariants : public testing::TestWithParam<TensorVariant> {};

TEST_P(TensorVariants, GiveTheSameLogits) {
  const std::vector<float> expected = EditedCase(GetParam().base).logits();
  EditedCase edited(GetParam().base);
  GetParam().edit(edited);
  EXPECT_EQ(test::largest_difference(edited.logits(), expected), 0);
}

INSTANTIATE_TEST_SUITE_P(All, TensorVariants, testing::ValuesIn(tensor_variants()),
                         [](const auto& test) { return test.param.name; });

TEST(StoredTensors, EitherOfTiedTensorsIsEnough) {
  const char* qwen2 = "tie_true_other_head";
  EditedCase without_head(qwen2), without_embeddings(qwen2), both(qwen2);
  without_head.tensors.erase("lm_head.weight");
  without_embeddings.tensors.erase("lm_head.weight");
  both.tensors["lm_head.weight"] = both.tensors["model.embed_tokens.weight"];
  without_embeddings.rename(
      [](const std::string& name) { return name == "model.embed_tokens.weight" ? "lm_head.weight" : name; });
  const std::vector<float> expected = without_head.logits();
  EXPECT_EQ(test::largest_difference(without_embeddings.logits(), expected), 0);
  EXPECT_EQ(test::largest_difference(both.logits(), expected), 0);
}

TEST(StoredTensors, StacksOfAnotherShapeAreRefused) {
  EditedCase edited("moe_fused_v5");
  EditedTensor& stack = edited.tensors["model.layers.1.mlp.experts.gate_up_proj"];
  stack.shape = {4, 32, 48};
  const ScratchFolder scratch;
  edited.write(scratch);
  test::expect_error(Status::invalid_file,
                     {"\"model.layers.1.mlp.experts.gate_up_proj\": expected shape [4, 48, 32], found [4, 32, 48]"},
                     [&] { Checkpoint::open(scratch.path()); });
}

TEST(StoredTensors, OneTensorUnderTwoNamesIsRefused) {
  EditedCase edited("moe_mixtral_v5_names");
  edited.tensors["model.layers.0.block_sparse_moe.gate.weight"] = edited.tensors["model.layers.0.mlp.gate.weight"];
  const ScratchFolder scratch;
  edited.write(scratch);
  test::expect_error(Status::invalid_file,
                     {"\"model.layers.0.block_sparse_moe.gate.weight\": expected one tensor of this meaning"},
                     [&] { Checkpoint::open(scratch.path()); });
}

/// A model in two files, the first of which has the layers' tensors.
class Shards : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& [name, tensor] : edited_.tensors)
      (name.find("layers") != std::string::npos ? first_ : second_)[name] = tensor;
    scratch_.file("config.json", edited_.config_text());
  }
  void write(const char* first = "model-00001-of-00002.safetensors",
             const char* second = "model-00002-of-00002.safetensors") {
    EditedCase::write_tensors(scratch_ / first, first_);
    EditedCase::write_tensors(scratch_ / second, second_);
  }
  void index(const std::string& more = "") {
    std::string map;
    for (const auto* file : {&first_, &second_})
      for (const auto& [name, tensor] : *file)
        map += fmt::format("{}\"{}\":\"model-0000{}-of-00002.safetensors\"", map.empty() ? "" : ",", name,
                           file == &first_ ? 1 : 2);
    scratch_.file("model.safetensors.index.json",
                  fmt::format("{{\"metadata\":{{\"total_size\":1}},\"weight_map\":{{{}{}}}}}", map, more));
  }
  void expect_same() { EXPECT_EQ(test::largest_difference(EditedCase::logits(scratch_.path()), edited_.logits()), 0); }

  EditedCase edited_{"bos_out"};
  test::EditedTensors first_, second_;
  ScratchFolder scratch_;
};

TEST_F(Shards, AnIndexMayNameTensorsThatNobodyReads) {
  write();
  index(R"(,"model.layers.0.self_attn.rotary_emb.inv_freq":"model-00001-of-00002.safetensors")");
  expect_same();
}

TEST_F(Shards, FilesMayHaveTensorsThatTheIndexDoesNotName) {
  index();
  first_["model.layers.0.self_attn.rotary_emb.inv_freq"] = {DType::f32, {4}, std::vector<std::byte>(16)};
  second_["model.layers.0.self_attn.rotary_emb.inv_freq"] = {DType::f32, {4}, std::vector<std::byte>(16)};
  write();
  expect_same();
}

TEST_F(Shards, TheLastFileCountsAsInTransformers) {
  index();
  first_["lm_head.weight"] = {DType::f32, {97, 32}, std::vector<std::byte>(std::size_t{4} * 97 * 32)};
  write();
  expect_same();
}

TEST_F(Shards, AWholeSetNeedsNoIndex) {
  write();
  expect_same();
  std::filesystem::remove(scratch_ / "model-00001-of-00002.safetensors");
  test::expect_error(Status::io, {"found \"model-00002-of-00002.safetensors\" only"},
                     [&] { Checkpoint::open(scratch_.path()); });
}

TEST_F(Shards, WhatIsNeededAndAbsentIsNamed) {
  index();
  first_.erase("model.layers.1.mlp.up_proj.weight");
  write();
  test::expect_error(
      Status::invalid_file,
      {"expected the tensor \"model.layers.1.mlp.up_proj.weight\" of shape [48, 32], found none of that name"},
      [&] { EditedCase::logits(scratch_.path()); });
}

}  // namespace
}  // namespace cermet
