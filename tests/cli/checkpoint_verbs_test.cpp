// inspect and synth: what they print and write, and what they say of broken checkpoints.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

const std::string reference = "tests/model/data/reference/";

/// A copy of a small checkpoint that a test may break.
class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    fs::copy(fs::path(CERMET_SOURCE_DIR) / reference / "llama-gqa-f32", model, fs::copy_options::recursive);
  }
  void expect_broken(std::initializer_list<std::string_view> fragments) {
    expect_mistake("inspect " + model.string(), fragments);
    expect_mistake("run " + model.string() + " --ids 1,2", fragments);
  }
  /// Replaces a piece of config.json.
  void edit_config(const std::string& from, const std::string& to) {
    std::string text = content_of(model / "config.json");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(model / "config.json") << text.replace(at, from.size(), to);
  }

  ScratchFolder scratch;
  const fs::path model = scratch / "model";
};

TEST(Inspect, DescribesTheDemoModel) {
  const auto json = run_cermet("inspect models/demo --json").json();
  EXPECT_EQ(json["architecture"]["name"], "Qwen3MoeForCausalLM");
  EXPECT_EQ(json["architecture"]["experts"], 8);
  EXPECT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["tensors"].size(), json["tensor_count"].get<std::size_t>());
  EXPECT_GT(json["parameters"], json["active_parameters"]);
  EXPECT_EQ(json["problems"].size(), 0u);
  const std::string text = run_cermet("inspect models/demo").out;
  for (const char* part : {"Qwen3MoeForCausalLM", "model.layers.*.self_attn.q_proj.weight", "x 6", "bf16",
                           "model-00001-of-00002.safetensors"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(run_cermet("inspect models/demo --tensors").out.find("model.layers.5.self_attn.q_proj.weight"),
            std::string::npos);
}

TEST(Inspect, ChecksEveryByte) {
  const CommandResult result = run_cermet("inspect models/demo --check --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["check"]["ok"], true);
  EXPECT_EQ(result.json()["check"]["tokenizer"], true);
  EXPECT_EQ(result.json()["check"]["bytes_read"], result.json()["bytes"]);
  EXPECT_EQ(result.err, "") << "a progress bar in a pipe";
}

TEST_F(Checkpoint, TruncatedFileIsNamed) {
  fs::resize_file(model / "model.safetensors", 1000);
  expect_broken({"model.safetensors", "expected", "found"});
}

TEST_F(Checkpoint, LyingHeaderLengthIsNamed) {
  std::fstream(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary)
      .write("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
  expect_broken({"model.safetensors", "header"});
}

TEST_F(Checkpoint, AbsentFilesAreNamed) {
  fs::remove(model / "model.safetensors");
  expect_broken({"model.safetensors"});
  fs::remove(model / "config.json");
  expect_broken({"config.json"});
}

TEST_F(Checkpoint, BadConfigurationFieldsAreNamed) {
  edit_config("\"num_hidden_layers\": ", "\"num_hidden_layers\": -");
  expect_broken({"config.json", "num_hidden_layers", "-"});
}

TEST_F(Checkpoint, UnknownArchitectureIsNamed) {
  edit_config("LlamaForCausalLM", "GhostForCausalLM");
  expect_broken({"config.json", "GhostForCausalLM"});
}

TEST_F(Checkpoint, AbsentTensorsFailTheCheck) {
  edit_config("\"num_hidden_layers\": ", "\"num_hidden_layers\": 1");  // ten layers and more
  EXPECT_EQ(run_cermet("inspect " + model.string()).code, 0);
  EXPECT_FALSE(run_cermet("inspect " + model.string() + " --json").json()["problems"].empty());
  expect_mistake("inspect --check " + model.string(), {"problems", "model.layers."});
}

TEST_F(Checkpoint, NotANumberIsCounted) {
  std::fstream file(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4, std::ios::end);
  file.write("\x00\x00\xc0\x7f", 4);
  file.close();
  const auto json = run_cermet("inspect --check --json " + model.string()).json();
  ASSERT_EQ(json["check"]["non_finite"].size(), 1u);
  EXPECT_EQ(json["check"]["non_finite"][0]["nan"], 1);
}

TEST(Inspect, MistakesAreNamed) {
  expect_mistake("inspect", {"MODEL"});
  expect_mistake("inspect no/such/model", {"no/such/model"});
  expect_mistake("inspect LICENSE", {"LICENSE"});
}

TEST(Synth, WritesAModelThatRuns) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "random").string(), config = reference + "qwen3moe-bf16/config.json";
  const CommandResult made = run_cermet("synth --config " + config + " --out " + out + " --seed 7 --json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.json()["files"], 1);
  EXPECT_GT(made.json()["parameters"], 1000);
  EXPECT_EQ(run_cermet("inspect --check " + out).code, 0);
  const CommandResult ran = run_cermet("run " + out + " --ids 1,2,3 -n 4 --ignore-eos --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["ids"].size(), 4u);
}

TEST(Synth, FullDiskIsToldAndLeavesNothing) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "random").string();
  const CommandResult result = run_cermet("synth --config models/demo/config.json --out " + out, "", "ulimit -f 100;");
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_NE(result.err.find(out), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(out));
}

TEST(Synth, MistakesAreNamed) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "random").string();
  expect_mistake("synth --out " + out, {"--config"});
  expect_mistake("synth --config models/demo/config.json", {"--out"});
  expect_mistake("synth --config nothing.json --out " + out, {"nothing.json"});
  expect_mistake("synth --config LICENSE --out " + out, {"LICENSE"});
  expect_mistake("synth --config models/demo/config.json --out models", {"models"});
  expect_mistake("synth --config models/demo/config.json --out /proc/random", {"/proc/random"});
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace cermet::test
