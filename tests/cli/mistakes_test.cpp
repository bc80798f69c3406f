// Mistakes of the command line that could be taken without a word: numbers out of range, options of another kind of
// model or of another way to work.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::string classifier = "models/demo_onnx/classifier.onnx";

TEST(Numbers, AreWholeAndInRange) {
  expect_mistake("run models/demo -p a --seed -1",
                 {"--seed: expected a whole number from 0 to 18446744073709551615, found -1"});
  expect_mistake("run models/demo -p a -n 99999999999999999999",
                 {"--new-tokens: expected 0 to 1073741824, found 99999999999999999999"});
  expect_mistake("run models/demo -p a -n 1e3", {"--new-tokens"});
  expect_mistake("run models/demo -p a -n 0x10", {"--new-tokens", "found \"0x10\""});
  expect_mistake("run models/demo -p a -n 4.5", {"--new-tokens"});
  expect_mistake("run models/demo -p a --seed 18446744073709551616", {"--seed"});
  expect_mistake("synth --config models/demo/config.json -o x --seed -7", {"--seed"});
  expect_mistake("cache list --limit -1", {"--limit"});
  for (const char* value : {"nan", "inf", "1e999", "-0.5", "1,5", "''"})
    expect_mistake(std::string("run models/demo -p a --temperature ") + value, {"--temperature"});
  expect_mistake("run models/demo -p a --top-k -1", {"--top-k: expected 0 to 1073741824, found -1"});
  expect_mistake("run models/demo -p a --top-p 1.5", {"--top-p"});
  expect_mistake("run models/demo -p a --min-p -1", {"--min-p"});
  expect_mistake("run models/demo -p a --repetition-penalty 0",
                 {"--repetition-penalty: expected a number above 0, up to 1e+06, found 0"});
  const CommandResult leading = run_cermet("run " + tiny + " --ids 1,2 -n 010 --ignore-eos --json");
  ASSERT_EQ(leading.code, 0) << leading.err;
  EXPECT_EQ(leading.json()["ids"].size(), 10u) << "not octal";
}

TEST(OptionsOfAnotherInput, AreRefusedByName) {
  for (const char* option : {"-p hello",
                             "-n 4",
                             "--ids 1,2",
                             "--ignore-eos",
                             "--temperature 1",
                             "--top-k 3",
                             "--top-p 0.5",
                             "--min-p 0.1",
                             "--repetition-penalty 2",
                             "--dtype f32",
                             "--weights int8",
                             "--head int8",
                             "--kv-cache int8",
                             "--context 64",
                             "--max-batch-tokens 64",
                             "--compact-weights",
                             "--rope-frequencies stored",
                             "--config 'a: b=1'",
                             "--steps-per-launch 2",
                             "--tensor-parallel 2",
                             "--expert-parallel 2"})
    for (const std::string& model : {classifier, std::string("block.graph")}) {
      const std::string name = std::string(option).substr(0, std::string(option).find(' '));
      const std::string spelled = name == "-p" ? "--prompt" : name == "-n" ? "--new-tokens" : name;
      expect_mistake("run " + model + " " + option,
                     {spelled + ": expected a checkpoint's folder with it, found ", model});
    }
  for (const char* option : {"--input x=x.npy", "--dim T=4", "--rounding fast", "-o results"})
    expect_mistake(std::string("run models/demo -p a ") + option,
                   {"expected an ONNX file or a graph with it, found a checkpoint's folder (models/demo)"});
  expect_mistake("bench model " + classifier + " --batch 4", {"--batch: expected a checkpoint's folder with it"});
  expect_mistake("bench model " + classifier + " -n 4", {"--new-tokens: expected a checkpoint's folder with it"});
  expect_mistake("bench model block.graph --limits",
                 {"--limits: expected a checkpoint's folder or an ONNX file with it, found a graph (block.graph)"});
  expect_mistake("inspect " + classifier + " --tensors", {"--tensors: expected a checkpoint's folder with it"});
  expect_mistake("tune graph " + classifier + " --tokens 4",
                 {"--tokens: expected a graph with it, found an ONNX file"});
  expect_mistake("tune graph block.graph --dim T=4", {"--dim: expected an ONNX file with it, found a graph"});
  expect_mistake("explain models/demo --input x=random", {"--input: expected an ONNX file or a graph with it"});
}

TEST(OptionsThatNeedOthers, AreRefusedAlone) {
  expect_mistake("run models/demo -p a --batch 4", {"--batch: expected --prompts with it, found none"});
  expect_mistake("run models/demo -p a --data-parallel 2", {"--data-parallel: expected --prompts with it, found none"});
  expect_mistake("run models/demo -p a --overlap-experts",
                 {"--overlap-experts: expected --data-parallel with it, found none"});
  expect_mistake("inspect models/demo --threads 2", {"--threads: expected --check with it, found none"});
  expect_mistake("quantize models/demo --heldout-chars 5", {"--heldout-chars: expected --heldout with it, found none"});
  expect_mistake("quantize --check nothing --scheme w8a16", {"--scheme: expected no --check with it, found both"});
  expect_mistake("quantize --print-policy --calib x", {"--calib: expected no --print-policy with it, found both"});
  expect_mistake("bench suite nothing.json --limits",
                 {"--limits: expected a GPU (--device cuda), found cpu, whose limits `cermet limits` measures"});
  expect_mistake("bench model " + classifier + " --plan --steps",
                 {"--plan: expected neither --steps nor --trace with it, found --steps"});
}

TEST(Types, HaveTheNamesOfOtherTools) {
  for (const char* name : {"fp16", "float16", "f16", "bfloat16", "float32", "fp32"}) {
    const CommandResult result = run_cermet("run " + tiny + " --ids 1,2 -n 1 --json --dtype " + name);
    EXPECT_EQ(result.code, 0) << name << result.err;
  }
  EXPECT_EQ(run_cermet("explain op linear --shape 'x=float32[8,64] w=fp32[64,64]' --json").json()["problem"],
            run_cermet("explain op linear --shape 'x=f32[8,64] w=f32[64,64]' --json").json()["problem"]);
  expect_mistake("run models/demo -p a --dtype fp17", {"--dtype: expected", "found \"fp17\""});
}

}  // namespace
}  // namespace cermet::test
