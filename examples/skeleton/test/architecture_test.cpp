// The skeleton of an architecture, through the parser of config.json.
#include <gtest/gtest.h>

#include "model/config.hpp"
#include "tests/model/blocks.hpp"
#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

constexpr std::string_view config =
    R"({"architectures": ["StarlingForCausalLM"], "model_type": "starling", "vocab_size": 100, "hidden_size": 32,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "attention_bias": true, "sliding_window": 16})";

TEST(Architecture, IsParsedByItsRow) {
  const test::ScratchFolder folder;
  folder.file("config.json", config);
  const ModelConfig parsed = load_config(folder.path());
  EXPECT_EQ(parsed.architecture_name, "StarlingForCausalLM");
  EXPECT_EQ(parsed.rms_norm_eps, 1e-5);
  EXPECT_EQ(parsed.max_position_embeddings, 8192);
  const Attention& attention = test::attention_of(parsed.decoder);
  EXPECT_TRUE(attention.q_norm && attention.k_norm);
  EXPECT_TRUE(attention.q.bias && attention.k.bias && attention.v.bias);
  EXPECT_EQ(test::windows_of(parsed), (std::vector<std::int64_t>{16, 16}));
  bool has_norm = false;
  for (const ExpectedTensor& tensor : expected_tensors(parsed))
    has_norm |= tensor.name == "model.layers.1.self_attn.q_norm.weight";
  EXPECT_TRUE(has_norm);
}

}  // namespace
}  // namespace cermet
