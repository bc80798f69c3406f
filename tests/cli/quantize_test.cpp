// cermet quantize and convert, as a user runs them.
#include <algorithm>
#include <map>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::string small =
    "quantize models/demo --calib models/demo/calibration.jsonl --samples 6 --length 48 --no-speed --out ";

/// The files of a folder but for the reports, which have a date.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().stem() != "report") files[entry.path().filename().string()] = content_of(entry.path());
  return files;
}

TEST(Quantize, WritesACheckpointThatRunsAndIsWhatItSays) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "out").string();
  const CommandResult result =
      run_cermet(small + out + " --heldout models/demo/heldout.txt --heldout-chars 9000 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const nlohmann::json json = result.json();
  EXPECT_EQ(json["prompts"], 6);
  EXPECT_GT(json["bytes_before"].get<double>(), 1.6 * json["bytes_after"].get<double>());
  EXPECT_NEAR(json["perplexity_after"].get<double>() / json["perplexity_before"].get<double>(), 1, 0.02);
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
  for (const char* file :
       {"config.json", "model.safetensors", "tokenizer.json", "report.md", "report.html", "cermet_quantization.json"})
    EXPECT_TRUE(std::filesystem::exists(scratch / "out" / file)) << file;
  EXPECT_NE(content_of(scratch / "out/report.md").find("| perplexity |"), std::string::npos);

  const CommandResult check = run_cermet("quantize --check " + out);
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_NE(check.out.find("168 quantized modules"), std::string::npos) << check.out;
  EXPECT_EQ(run_cermet("run " + out + " -p 'The PostgreSQL server' -n 4 --json").json()["ids"].size(), 4u);

  ASSERT_EQ(run_cermet("convert " + out + " --to modelslim --out " + (scratch / "slim").string()).code, 0);
  EXPECT_EQ(run_cermet("quantize --check " + (scratch / "slim").string()).code, 0);
  const CommandResult back = run_cermet("convert " + (scratch / "slim").string() +
                                        " --to compressed-tensors --json --out " + (scratch / "back").string());
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(back.json()["rounded"].size(), 0u);
  EXPECT_EQ(content_of(scratch / "back/config.json"), content_of(scratch / "out/config.json"));
}

TEST(Quantize, CheckPrintsALineForEachViolation) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "out").string();
  ASSERT_EQ(run_cermet(small + out + " --scheme w8a8_dynamic").code, 0);
  std::string record = content_of(scratch / "out/cermet_quantization.json");
  const std::size_t at = record.find("model.layers.*");
  record.replace(at, std::string("model.layers.*").size(),
                 "model.layers.0.self_attn.o_proj = w8a16\\nmodel.layers.1.self_attn.o_proj = 16bit\\nmodel.layers.*");
  scratch.file("out/cermet_quantization.json", record);
  const CommandResult check = run_cermet("quantize --check " + out);
  EXPECT_EQ(check.code, 2);
  EXPECT_EQ(std::count(check.out.begin(), check.out.end(), '\n'), 2) << check.out;
  EXPECT_NE(check.out.find("model.layers.0.self_attn.o_proj: expected w8a16 (policy), found w8a8_dynamic"),
            std::string::npos)
      << check.out;
  EXPECT_NE(check.err.find("2 violations"), std::string::npos) << check.err;
}

TEST(Quantize, AnInterruptedRunIsResumedToTheSameFiles) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_cermet(small + (scratch / "whole").string()).code, 0);
  const std::string out = (scratch / "out").string();
  int killed = 0;
  for (const char* seconds : {"0.3", "0.5", "0.7", "0.9"}) {
    const int status = std::system(("cd " CERMET_SOURCE_DIR "; timeout -s KILL " + std::string(seconds) +
                                    " " CERMET_BINARY_DIR "/bin/cermet " + small + out + " >/dev/null 2>&1")
                                       .c_str());
    if (status != 0) ++killed;
    if (std::filesystem::exists(out)) break;
  }
  EXPECT_GT(killed, 0);
  if (!std::filesystem::exists(out)) {
    const CommandResult result = run_cermet(small + out);
    ASSERT_EQ(result.code, 0) << result.err;
  }
  EXPECT_EQ(files_of(out), files_of(scratch / "whole"));
  EXPECT_EQ(scratch.entries(), 2);
}

TEST(Quantize, ChoosesSchemesForATarget) {
  const ScratchFolder scratch;
  const CommandResult result = run_cermet(small + (scratch / "out").string() +
                                          " --heldout models/demo/heldout.txt --heldout-chars 9000 --target-ppl +1%");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("model.layers.0.self_attn.qkv: "), std::string::npos) << result.out;
  EXPECT_NE(content_of(scratch / "out/report.md").find("## Attempts"), std::string::npos);
  const nlohmann::json again =
      run_cermet(small + (scratch / "json").string() +
                 " --heldout models/demo/heldout.txt --heldout-chars 9000 --target-ppl +1% --json")
          .json();
  EXPECT_EQ(again["choices"].size(), 18u);  // q, k, v; o; experts of six layers
  EXPECT_TRUE(again["choices"][0]["errors"].contains("16bit"));
  EXPECT_EQ(run_cermet("quantize --check " + (scratch / "out").string()).code, 0);
}

TEST(Quantize, EveryArchitectureFromTokenIds) {
  const ScratchFolder scratch;
  std::string lines;
  for (int prompt = 0; prompt < 6; ++prompt) {
    lines += "{\"ids\": [3";
    for (int i = 1; i < 24; ++i) lines += fmt::format(", {}", (prompt * 53 + i * i * 7) % 320);
    lines += "]}\n";
  }
  const std::string calibration = scratch.file("ids.jsonl", lines).string();
  for (const char* model : {"llama-bias-mha-f16", "llama-gqa-f32", "mistral-window-bf16", "mixtral-bf16",
                            "qwen2-bias-f16", "qwen3-qknorm-bf16", "qwen3moe-mixed-f32"})
    for (const char* format : {"compressed-tensors", "modelslim"}) {
      const std::string out = (scratch / fmt::format("{}-{}", model, format)).string();
      const CommandResult result =
          run_cermet(fmt::format("quantize tests/model/data/reference/{} --calib {} --format {} --no-speed --out {}",
                                 model, calibration, format, out));
      ASSERT_EQ(result.code, 0) << model << "\n" << result.err;
      const CommandResult check = run_cermet("quantize --check " + out);
      EXPECT_EQ(check.code, 0) << model << " " << format << "\n" << check.out;
      EXPECT_EQ(run_cermet("run " + out + " --ids 5,6,7 -n 3 --json").code, 0) << model << " " << format;
    }
}

TEST(Quantize, PrintsThePolicy) {
  EXPECT_NE(run_cermet("quantize --print-policy").out.find("*.experts.*             = w8a8_dynamic"),
            std::string::npos);
  EXPECT_NE(run_cermet("quantize --print-policy --scheme w8a16").out.find("= w8a16"), std::string::npos);
}

TEST(Quantize, Mistakes) {
  const ScratchFolder scratch;
  const std::string out = " --out " + (scratch / "out").string(), calib = " --calib models/demo/calibration.jsonl",
                    both = calib + out;
  const auto file = [&](const char* name, const char* content) { return scratch.file(name, content).string(); };
  expect_mistake("quantize" + both, {"MODEL", "found none"});
  expect_mistake("quantize models/demo" + out, {"--calib"});
  expect_mistake("quantize models/demo" + calib, {"--out"});
  expect_mistake("quantize models/absent" + both, {"models/absent"});
  expect_mistake("quantize models/demo --calib absent.jsonl" + out, {"absent.jsonl"});
  expect_mistake("quantize models/demo --calib models/demo/model-00001-of-00002.safetensors" + out, {"UTF-8"});
  expect_mistake("quantize models/demo --calib " + file("p.jsonl", "{\"text\": \"a\"}\n{\"txt\": 1}\n") + out,
                 {"p.jsonl:2", "\"text\""});
  expect_mistake("quantize models/demo --policy " + file("p.policy", "* = w8a8_dynamic\n*.gate = int4\n") + both,
                 {"p.policy:2", "w8a8_static", "int4"});
  expect_mistake("quantize models/demo --policy " + file("q.policy", "*.q_proj = w8a8_static\n") + both,
                 {"q_proj", "k_proj", "share an input"});
  expect_mistake("quantize models/demo --scheme int4" + both, {"--scheme", "w8a16", "int4"});
  expect_mistake("quantize models/demo --anti-outlier most" + both, {"--anti-outlier", "auto", "most"});
  expect_mistake("quantize models/demo --clamp-percentile 3" + both, {"--clamp-percentile", "3"});
  expect_mistake("quantize models/demo --format gguf" + both, {"--format", "gguf"});
  expect_mistake("quantize models/demo --target-ppl 0.5" + both, {"--target-ppl", "+0.5%", "0.5"});
  expect_mistake("quantize models/demo --target-ppl +0.5%" + both, {"--target-ppl", "--heldout"});
  expect_mistake("quantize models/demo" + calib + " --out " + scratch.path().string(), {"new or empty folder"});
  expect_mistake("quantize models/demo --format modelslim --scheme fp8_dynamic" + both, {"ModelSlim", "fp8_dynamic"});
  expect_mistake("quantize --check models/demo", {"models/demo", "expected a quantized checkpoint"});
  expect_mistake("quantize tests/model/data/reference/llama-gqa-f32" + both, {"tokenizer.json", "--tokenizer"});
  expect_mistake(
      "quantize tests/model/data/reference/llama-gqa-f32 --calib " + file("ids.jsonl", "{\"ids\": [1, 320]}\n") + out,
      {"token id", "319", "320"});
  expect_mistake("convert models/demo --to modelslim" + out, {"expected a quantized checkpoint"});
  expect_mistake("convert models/demo --to gguf" + out, {"--to", "gguf"});
  EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "out.partial"));
}

}  // namespace
}  // namespace cermet::test
