// The verbs that run a model: what they print, the JSON keys that programs rely on, and mistakes.
#include <cmath>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(Run, StreamsTextAndSummarises) {
  const CommandResult result = run_cermet("run models/demo -p 'The PostgreSQL server' -n 6");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "The PostgreSQL server is a server with a server\n");
  for (const char* word : {"model", "prefill", "decode", "tokens/s", "memory", "kernels", "gemm."})
    EXPECT_NE(result.err.find(word), std::string::npos) << word;
}

TEST(Run, JsonHasTheContractsKeys) {
  const CommandResult result = run_cermet("run models/demo -p 'The PostgreSQL server' -n 4 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json json = result.json();
  EXPECT_EQ(json["prompt_ids"], (std::vector<int>{497, 2314, 1581}));
  EXPECT_EQ(json["ids"], (std::vector<int>{302, 262, 1581, 403}));
  EXPECT_EQ(json["text"], " is a server with");
  for (const char* key : {"prefill_tokens_per_second", "decode_tokens_per_second", "peak_memory_bytes"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
}

TEST(Run, IdsNeedNoTokenizer) {
  const nlohmann::json json = run_cermet("run " + tiny + " --ids '5, 6 7' -n 3 --json").json();
  EXPECT_EQ(json["ids"].size(), 3u);
  EXPECT_TRUE(json["text"].is_null());
}

TEST(Run, SamplingFollowsTheSeed) {
  const std::string common =
      "run models/demo -p 'To install' -n 12 --json --temperature 1.2 --top-k 50 --top-p 0.95 --min-p 0.01 --seed ";
  const auto ids = [&](const std::string& seed) { return run_cermet(common + seed).json()["ids"]; };
  EXPECT_EQ(ids("7"), ids("7"));
  EXPECT_NE(ids("7"), ids("8"));
}

TEST(Run, ReadsPromptsLineByLineAndKeepsTheContext) {
  const CommandResult both = run_cermet("run models/demo -n 3 --json", "The PostgreSQL\n\n server\n");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(std::count(both.out.begin(), both.out.end(), '\n'), 2);
}

TEST(Run, ALineFollowsAllThatWasSaid) {  // expected tokens: transformers', given all of it
  const auto answers_of = [](const std::string& tokens) {
    const CommandResult run = run_cermet("run tests/model/data/chat --json --dtype f32 -n " + tokens,
                                         "The quick brown fox\njumps over\nthe lazy dog\n");
    EXPECT_EQ(run.code, 0) << run.err;
    std::vector<std::vector<int>> answers;
    for (std::size_t at = 0; at < run.out.size(); at = run.out.find('\n', at) + 1)
      answers.push_back(
          nlohmann::json::parse(run.out.substr(at, run.out.find('\n', at) - at))["ids"].get<std::vector<int>>());
    return answers;
  };
  EXPECT_EQ(answers_of("1"), (std::vector<std::vector<int>>{{148}, {5}, {72}}));
  EXPECT_EQ(answers_of("6"),
            (std::vector<std::vector<int>>{
                {148, 366, 317, 194, 364, 11}, {38, 56, 17, 358, 1, 199}, {72, 19, 379, 302, 380, 364}}));
}

TEST(Run, TextIsUtf8) {
  const ScratchFolder folder;
  const std::string utf16("\xff\xfe{\0", 4);
  const std::string file = folder.file("p.jsonl", utf16).string();
  expect_mistake("run models/demo --prompts " + file, {"p.jsonl:1", "UTF-8", "0xff", "UTF-16", "iconv"});
  expect_mistake("eval models/demo --text " + file, {"p.jsonl:1", "UTF-8", "0xff", "UTF-16", "iconv"});
  expect_mistake("run models/demo -n 1 -p \"$(printf 'caf\\351')\"", {"prompt:1", "UTF-8", "0xe9", "offset 3"});
  folder.file("p.jsonl", "\xef\xbb\xbf{\"prompt\": \"The\"}\n");
  EXPECT_EQ(run_cermet("run models/demo -n 1 --json --prompts " + file).code, 0);
}

TEST(Run, ReadsAPromptInPassesOfAsManyTokensAsAskedFor) {
  const std::string run =
      "run models/demo --json -n 4 -p 'The PostgreSQL server is a server that listens for connections of clients and "
      "answers them one by one'";
  const nlohmann::json one = run_cermet(run).json();
  ASSERT_GT(one["prompt_ids"].size(), 14u);
  for (const int tokens : {1, 7, 2048})
    EXPECT_EQ(run_cermet(fmt::format("{} --max-batch-tokens {}", run, tokens)).json()["ids"], one["ids"]) << tokens;
  expect_mistake("run models/demo -p hello --max-batch-tokens 0",
                 {"--max-batch-tokens: expected 1 to 1048576, found 0"});
}

TEST(Run, ZeroTokensIsAPrefillOnly) {
  EXPECT_EQ(run_cermet("run models/demo -p hello -n 0 --json").json()["ids"].size(), 0u);
}

TEST(Run, NullDeviceGoesThroughTheMotions) {
  EXPECT_EQ(run_cermet("run models/demo -p hello -n 2 --device null --json").code, 0);
}

TEST(Run, ForcesConfigurations) {
  const CommandResult own = run_cermet("run models/demo -p hello -n 1"),
                      forced = run_cermet("run models/demo -p hello -n 1 --config 'gemm.linear.plain: default'");
  EXPECT_EQ(own.err.find("gemm.linear.plain"), std::string::npos) << own.err;
  EXPECT_NE(forced.err.find("gemm.linear.plain x "), std::string::npos) << forced.err;
  const CommandResult option = run_cermet("run models/demo -p hello -n 1 --config 'gemm.linear.plain:default'", "",
                                          "CERMET_CONFIG='rowwise.softmax: default'");
  EXPECT_NE(option.err.find("gemm.linear.plain x "), std::string::npos)
      << "the option comes before the variable: " << option.err;
  const CommandResult broken = run_cermet("run models/demo -p hello -n 1 --config 'gemm.linear.plain:default'", "",
                                          "CERMET_CONFIG='gemv.linera: stream=0'");
  EXPECT_EQ(broken.code, 0) << broken.err;
  EXPECT_NE(broken.err.find("gemm.linear.plain x "), std::string::npos)
      << "a variable that is not used may be wrong: " << broken.err;
  const auto plan = run_cermet("bench model models/demo --plan --json --config 'gemm.linear.plain: default'");
  EXPECT_NE(plan.out.find("gemm.linear.plain"), std::string::npos) << plan.err;
  expect_mistake("run models/demo -p hello --config 'gemv.linera: stream=0'",
                 {"--config", "gemv.linear, ", "\"gemv.linera\""});
  expect_mistake("run models/demo -p hello --config 'gemm.linear.plain: rows=2'",
                 {"--config", "gemm.linear.plain", "expected default", "\"rows\""});
  expect_mistake("run models/demo -p hello --config 'tile=2'", {"--config", "`kernel: field=1 ...`", "\"tile=2\""});
}

TEST(Run, StopsWhenTheContextIsFull) {
  const nlohmann::json json = run_cermet("run models/demo --ids 5,6,7 -n 100 --context 16 --ignore-eos --json").json();
  EXPECT_EQ(json["end"], "context");
  EXPECT_EQ(json["ids"].size(), 14u);  // the last one needs no room: nothing follows it
}

TEST(Run, MistakesAreOneLine) {
  expect_mistake("run /nowhere -p hi", {"/nowhere", "expected", "found"});
  expect_mistake("run README.md -p hi", {"README.md", "expected", "found"});
  expect_mistake("run " + tiny + " -p hi", {"tokenizer.json", "--ids"});
  expect_mistake("run models/demo -p hi --ids 3", {"expected one of -p, --ids and --prompts"});
  expect_mistake("run models/demo --ids 3,x", {"--ids", "id 1", "\"x\""});
  expect_mistake("run models/demo --ids ''", {"--ids"});
  expect_mistake("run models/demo -p ''", {"prompt", "at least one token"});
  expect_mistake("run models/demo --ids 8192", {"token id", "8191", "8192"});
  expect_mistake("run models/demo -p hi -n -1", {"-n", "-1"});
  expect_mistake("run models/demo -p hi --temperature -0.5", {"temperature", "-0.5"});
  expect_mistake("run models/demo -p hi --top-p 0", {"--top-p: expected a number above 0, up to 1, found 0"});
  expect_mistake("run models/demo -p hi --dtype i8", {"--dtype", "bf16", "\"i8\""});
  expect_mistake("run models/demo -p hi --weights f8", {"--weights", "i8", "\"f8\""});
  expect_mistake("run models/demo -p hi --kv-cache int4", {"--kv-cache", "i8 or f8_e4m3", "\"int4\""});
  expect_mistake("run models/demo -p hi --compact-weights", {"compact_weights", "expected device cuda", "found cpu"});
  expect_mistake("run models/demo -p hi --head bf16", {"--head", "i8 or f8_e4m3", "\"bf16\""});
  expect_mistake("run models/demo -p hi --device gpu", {"device", "cuda", "cpu"});
  expect_mistake("run models/demo -p hi --rope-frequencies some", {"--rope-frequencies", "exact or stored"});
  expect_mistake("run models/demo --ids 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 --context 16", {"16", "17"});
}

TEST(Run, CachesOfCodesContinueAsTheOthersDo) {
  const std::string command = "run models/demo --ids 497,2314,1581 -n 3 --json";
  const nlohmann::json expected = run_cermet(command).json()["ids"];
  for (const char* type : {"i8", "int8"})
    EXPECT_EQ(run_cermet(command + " --kv-cache " + type).json()["ids"], expected) << type;
}

TEST(Eval, JsonHasTheContractsKeys) {
  const nlohmann::json json =
      run_cermet("eval models/demo --text models/demo/heldout.txt --chars 6000 --window 256 --json").json();
  EXPECT_GT(json["perplexity"].get<double>(), 1);
  EXPECT_LT(json["perplexity"].get<double>(), 40);
  EXPECT_GT(json["standard_error"].get<double>(), 0);
  EXPECT_EQ(json["tokens"].get<int>() % 255, 0);
}

TEST(Eval, AQuantizedHeadCostsLittleAndIsRead) {
  const std::string eval = "eval models/demo --text models/demo/heldout.txt --chars 3000 --window 128 --json";
  const double stored = run_cermet(eval).json()["perplexity"];
  for (const char* type : {"int8", "fp8"}) {
    const double found = run_cermet(eval + " --head " + type).json()["perplexity"];
    EXPECT_NE(found, stored) << type;
    EXPECT_NEAR(found / stored, 1, 0.01) << type;
  }
  const auto bytes = [](const std::string& head) {
    return run_cermet("bench model models/demo --prompt-tokens 4 -n 1 --repeat 1 --json" + head)
        .json()["decode_weight_bytes_per_token"]
        .get<double>();
  };
  const nlohmann::json config = nlohmann::json::parse(content_of(CERMET_SOURCE_DIR "/models/demo/config.json"));
  const double rows = config["vocab_size"], columns = config["hidden_size"];
  EXPECT_EQ(bytes("") - bytes(" --head i8"), rows * columns - rows * 4)
      << "one byte less an element, and a scale a row";
  const std::string run = "run models/demo --ids 497,2314,1581 -n 4 --json --head i8";
  EXPECT_EQ(run_cermet(run + " --tensor-parallel 2").json()["ids"], run_cermet(run).json()["ids"]);
}

TEST(Eval, MistakesAreOneLine) {
  expect_mistake("eval models/demo --text /nowhere.txt", {"/nowhere.txt"});
  expect_mistake("eval models/demo --text models", {"models", "folder"});
  expect_mistake("eval models/demo --text models/demo/heldout.txt --chars 100", {"512", "heldout.txt"});
  expect_mistake("eval models/demo --text models/demo/heldout.txt --window 1", {"--window", "1"});
  expect_mistake("eval models/demo --text models/demo/heldout.txt --chars -5", {"--chars", "-5"});
  expect_mistake("eval models/demo --text models/demo/heldout.txt --context 64", {"--window", "64", "512"});
  expect_mistake("eval " + tiny + " --text models/demo/heldout.txt", {"tokenizer.json"});
}

TEST(Logits, JsonHasARowForEveryPosition) {
  const nlohmann::json json = run_cermet("logits " + tiny + " --ids 5,6,7 --json").json();
  ASSERT_EQ(json["logits"].size(), 3u);
  EXPECT_EQ(json["logits"][2].size(), 320u);
}

TEST(Logits, MistakesAreOneLine) {
  expect_mistake("logits " + tiny + " --ids 320", {"token id", "319", "320"});
  expect_mistake("logits " + tiny + " --ids -1", {"--ids"});
}

TEST(BenchModel, JsonHasSpeedsAndWork) {
  const nlohmann::json json =
      run_cermet("bench model models/demo --prompt-tokens 40 --new-tokens 3 --repeat 1 --json").json();
  EXPECT_GT(json["prefill_tokens_per_second"].get<double>(), 0);
  EXPECT_GT(json["decode_tokens_per_second"].get<double>(), 0);
  // Two of eight experts: 6 layers of attention (256x256 twice, 128x256 twice) and experts (2 x 3 x 256x256), router
  // 8x256, and the head 8192x256, in bf16.
  EXPECT_EQ(
      json["decode_weight_bytes_per_token"].get<double>(),
      2.0 * (6 * (2 * 65536 + 2 * 32768 + 2 * 3 * 65536 + 2048) + 8192 * 256) + 4.0 * (6 * (2 * 256 + 2 * 64) + 256));
}

TEST(BenchModel, MistakesAreOneLine) {
  expect_mistake("bench model models/demo --prompt-tokens 0", {"--prompt-tokens"});
  expect_mistake("bench model models/demo --prompt-tokens 100 --context 64", {"64"});
}

}  // namespace
}  // namespace cermet::test
