// cermet run --prompts and cermet bench model --batch: many sequences at a time.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(nlohmann::json::parse(text.substr(at, text.find('\n', at) - at)));
  return lines;
}

constexpr const char* four = R"({"prompt": "The PostgreSQL server", "id": "first"}
{"ids": [497, 2314, 1581], "max_new_tokens": 2, "id": 7}

{"prompt": "To install", "seed": 5}
{"prompt": "def main():", "max_new_tokens": 0}
)";

TEST(RunPrompts, GivesALineForEachInTheirOrder) {
  const ScratchFolder folder;
  const CommandResult result =
      run_cermet("run models/demo -n 4 --batch 3 --json --prompts " + folder.file("p.jsonl", four).string());
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<nlohmann::json> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], (nlohmann::json{{"id", "first"},
                                      {"prompt_tokens", 3},
                                      {"ids", {302, 262, 1581, 403}},
                                      {"text", " is a server with"},
                                      {"end", "length"}}));
  EXPECT_EQ(lines[1]["id"], 7);
  EXPECT_EQ(lines[1]["ids"], (std::vector<int>{302, 262}));
  EXPECT_EQ(lines[2]["id"], 4) << "the number of its line";
  EXPECT_EQ(lines[3]["text"], "");
  EXPECT_NE(result.err.find("4 prompts, 3 at a time"), std::string::npos) << result.err;
}

TEST(RunPrompts, SamplesWhatEachPromptGetsAlone) {
  const ScratchFolder folder;
  const std::string common = "run models/demo -n 12 --temperature 1.1 --top-p 0.95 --json --seed ",
                    file = folder.file("p.jsonl", four).string();
  const auto batch_of = [&](const std::string& size) {
    return run_cermet(common + "3 --batch " + size + " --prompts " + file).out;
  };
  const std::string alone = batch_of("1");
  EXPECT_EQ(lines_of(alone)[0]["ids"], run_cermet(common + "3 -p 'The PostgreSQL server'").json()["ids"]);
  EXPECT_EQ(lines_of(alone)[2]["ids"], run_cermet(common + "5 -p 'To install'").json()["ids"]);
  // Beside bf16 weights an engine for several sequences rounds operands of a single token too, whatever else is in the
  // batch.
  EXPECT_EQ(batch_of("4"), batch_of("2"));
  EXPECT_EQ(batch_of("4 --dtype f32"), batch_of("1 --dtype f32"));
}

TEST(RunPrompts, TextStreamsInTheOrderOfTheFile) {
  const ScratchFolder folder;
  const CommandResult result =
      run_cermet("run models/demo -n 4 --batch 2 --prompts " + folder.file("p.jsonl", four).string());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("[first] The PostgreSQL server is a server with\n[7]  is a\n[4] To install", 0), 0u)
      << result.out;
  EXPECT_NE(result.out.find("\n[5] def main():\n"), std::string::npos) << result.out;
}

TEST(RunPrompts, IdsNeedNoTokenizer) {
  const ScratchFolder folder;
  const std::string file = folder.file("p.jsonl", R"({"ids": [5, 6, 7]})").string();
  const CommandResult result = run_cermet("run " + tiny + " -n 3 --json --batch 9 --prompts " + file);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["ids"], run_cermet("run " + tiny + " --ids 5,6,7 -n 3 --json").json()["ids"]);
  EXPECT_TRUE(result.json()["text"].is_null());
}

TEST(RunPrompts, MistakesNameFileAndLine) {
  const ScratchFolder folder;
  const auto mistake = [&](const std::string& text, std::initializer_list<std::string_view> fragments,
                           const std::string& options = "") {
    expect_mistake("run models/demo --prompts " + folder.file("p.jsonl", text).string() + options, fragments);
  };
  mistake("", {"p.jsonl", "at least one prompt"});
  mistake("{\"prompt\": \"a\"}\n{\"prompt\": 3}\n", {"p.jsonl:2", "prompt", "a string", "3"});
  mistake("{\"prompt\": \"a\"}\n\nnonsense\n", {"p.jsonl:3"});
  mistake("[1]", {"p.jsonl:1", "an object"});
  mistake("{\"prompt\": \"a\", \"temperature\": 1}",
          {"p.jsonl:1", "temperature", "expected prompt, ids, id, max_new_tokens or seed"});
  mistake("{\"prompt\": \"a\", \"ids\": [1]}", {"p.jsonl:1", "prompt or ids", "both"});
  mistake("{\"id\": 1}", {"p.jsonl:1", "prompt or ids", "neither"});
  mistake("{\"prompt\": \"\"}", {"p.jsonl:1", "at least one token"});
  mistake("{\"ids\": [8192]}", {"p.jsonl:1", "ids[0]", "8191", "8192"});
  mistake("{\"ids\": [1], \"max_new_tokens\": -1}", {"p.jsonl:1", "max_new_tokens", "-1"});
  mistake("{\"ids\": [1], \"id\": []}", {"p.jsonl:1", "id", "a string or an integer"});
  mistake("{\"ids\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", {"p.jsonl:1", "16", "17"}, " --context 16");
  mistake("{\"ids\": [1]}", {"--batch", "0"}, " --batch 0");
  expect_mistake("run models/demo -p hi --batch 2", {"--batch", "--prompts"});
  expect_mistake("run models/demo -p hi --prompts p.jsonl", {"-p, --ids and --prompts"});
  expect_mistake("run models/demo --prompts /nowhere.jsonl", {"/nowhere.jsonl"});
  expect_mistake("run " + tiny + " --prompts " + folder.file("p.jsonl", "{\"prompt\": \"a\"}").string(),
                 {"p.jsonl:1", "tokenizer.json"});
}

TEST(BenchModel, ABatchHasSpeedsOfAllSequencesAndOfOne) {
  const nlohmann::json json =
      run_cermet("bench model models/demo --prompt-tokens 20 -n 3 --batch 4 --repeat 1 --json").json();
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["new_tokens"], 3);
  EXPECT_GT(json["prefill_tokens_per_second"], 0);
  EXPECT_NEAR(json["decode_tokens_per_second"].get<double>(),
              4 * json["decode_tokens_per_second_per_sequence"].get<double>(), 1e-6);
  // A step reads the dense weights once for 4 tokens, and all 8 experts, to which they can be routed.
  const double dense = 2.0 * (6 * (2 * 65536 + 2 * 32768 + 2048) + 8192 * 256) + 4.0 * (6 * (2 * 256 + 2 * 64) + 256),
               experts = 2.0 * 6 * 8 * 3 * 65536;
  EXPECT_EQ(json["decode_weight_bytes_per_token"].get<double>(), (dense + experts) / 4);
  // Together more than the model's own context.
  EXPECT_EQ(run_cermet("bench model models/demo --prompt-tokens 128 --new-tokens 1 --batch 24 --repeat 1 --json").code,
            0);
  const CommandResult text =
      run_cermet("bench model models/demo --prompt-tokens 20 --new-tokens 2 --batch 2 --repeat 1 --steps");
  EXPECT_NE(text.out.find("2 sequences"), std::string::npos) << text.out << text.err;
  expect_mistake("bench model models/demo --batch 0", {"--batch"});
  expect_mistake("bench model models/demo --prompt-tokens 100 --batch 4 --context 256", {"256"});
}

TEST(BenchModel, QuantizedProductsAreProducts) {
  const std::string command = "bench model models/demo --prompt-tokens 40 --new-tokens 0 --repeat 1 --json";
  const nlohmann::json plain = run_cermet(command).json(), quantized = run_cermet(command + " --weights i8").json();
  EXPECT_GT(plain["prefill_operations"], 0);
  EXPECT_EQ(quantized["prefill_operations"], plain["prefill_operations"]);
}

TEST(BenchModel, LimitsHaveTheNamesOfTheOtherVerbs) {
  const nlohmann::json bench =
      run_cermet("bench model models/demo --prompt-tokens 8 --new-tokens 1 --repeat 1 --limits --json")
          .json()["limits"];
  const nlohmann::json limits = run_cermet("limits --seconds 0.01 --json").json();
  const nlohmann::json op = run_cermet("bench op neg --shape 'f32[64]' --limits --json").json()["limits"];
  for (const char* key : {"read_bytes_per_second", "f32_operations_per_second", "bf16_operations_per_second",
                          "int8_operations_per_second"})
    for (const nlohmann::json* json : {&bench, &limits, &op}) EXPECT_TRUE(json->contains(key)) << key;
  EXPECT_EQ(bench.size(), op.size());
}

}  // namespace
}  // namespace cermet::test
