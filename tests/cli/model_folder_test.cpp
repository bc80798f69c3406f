// What people give in place of a model's folder, and prompts that are longer than a model takes.
#include <filesystem>

#include "io/json_file.hpp"
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

TEST(ModelFolder, PointersOfGitLfsSayWhatToDo) {
  const ScratchFolder scratch;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer.json"})
    fs::copy(fs::path(CERMET_SOURCE_DIR) / "models/demo" / name, scratch.path());
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    scratch.file(name, pointer);
  expect_mistake("run " + scratch.path().string() + " -p a",
                 {"model-00001-of-00002.safetensors", "Git LFS", "run git lfs pull"});
  scratch.file("tokenizer.json", pointer);
  expect_mistake("run " + scratch.path().string() + " -p a", {"tokenizer.json", "run git lfs pull"});
}

TEST(ModelFolder, GgufIsNotSupportedYet) {
  const ScratchFolder scratch;
  expect_mistake("run " + scratch.file("m.gguf", "GGUF\3").string() + " -p a",
                 {"found a GGUF file", "safetensors", "hf download NAME --local-dir DIR"});
  expect_mistake("run " + scratch.file("m", "GGUF\3").string() + " -p a", {"found a GGUF file"});
  fs::copy(fs::path(CERMET_SOURCE_DIR) / "models/demo/config.json", scratch.path());
  expect_mistake("run " + scratch.path().string() + " --ids 1", {"\"m.gguf\" only", "GGUF is not supported yet"});
}

TEST(ModelFolder, AFileOfAModelIsNotItsFolder) {
  expect_mistake("run models/demo/model-00001-of-00002.safetensors -p a",
                 {"found a file", "give the folder that holds it"});
  expect_mistake("run models/demo/config.json -p a", {"found a file", "give the folder that holds it"});
}

TEST(ModelFolder, TheNameOfAModelOnTheHubIsToldFromAFolder) {
  expect_mistake("run Qwen/Qwen3-0.6B -p a",
                 {"found nothing of that name", "hf download Qwen/Qwen3-0.6B --local-dir Qwen3-0.6B"});
  for (const char* path : {"./Qwen/Qwen3-0.6B", "nothing", "a/b/c"}) {
    const CommandResult result = run_cermet(std::string("run ") + path + " -p a");
    EXPECT_EQ(result.err.find("hf download"), std::string::npos) << result.err;
  }
}

TEST(ModelFolder, PromptsBeyondTheModelAreRefusedBeforeWeightsAreRead) {
  const fs::path cases = fs::path(CERMET_SOURCE_DIR) / "tests/model/cases";
  const JsonDocument document = JsonDocument::read(cases / "limit_run_ids/case.json");
  const std::string command(document.root().at("command").as_string());
  const std::string ids = command.substr(command.find("--ids"), command.find(" -n") - command.find("--ids"));
  const ScratchFolder scratch;
  fs::copy(cases / "limit_run_ids/config.json", scratch.path());
  scratch.file("model.safetensors", "not read");
  const std::string model = scratch.path().string();
  for (const char* verb : {"run", "logits"})
    expect_mistake(fmt::format("{} {} {}", verb, model, ids),
                   {"--ids: expected at most 64 tokens", "--context 150", "found 150"});
  expect_mistake(fmt::format("run {} {} --context 100", model, ids),
                 {"--ids: expected at most 100 tokens (--context), found 150"});
  const fs::path prompts = scratch.file("p.jsonl", fmt::format("{{\"ids\": [1]}}\n{{\"ids\": [{}]}}\n", ids.substr(6)));
  expect_mistake(fmt::format("run {} --prompts {}", model, prompts.string()),
                 {"p.jsonl:2: expected at most 64 tokens", "--context 150"});
}

TEST(ModelFolder, ALongerContextTakesThem) {
  const ScratchFolder scratch;
  const fs::path cases = fs::path(CERMET_SOURCE_DIR) / "tests/model/cases";
  fs::copy(cases / "limit_run_ids/config.json", scratch.path());
  fs::copy(cases / "weights/llama.safetensors", scratch / "model.safetensors");
  std::string ids = "1";
  for (int i = 1; i < 80; ++i) ids += ",1";
  EXPECT_EQ(run_cermet(fmt::format("run {} --ids {} -n 1 --context 80 --json", scratch.path().string(), ids))
                .json()["ids"]
                .size(),
            1u);
}

}  // namespace
}  // namespace cermet::test
