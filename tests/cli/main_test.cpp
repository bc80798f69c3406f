// What all verbs share: help, versions, exit codes, JSON errors.
#include <algorithm>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

const std::vector<std::string> verbs{
#define X(name) #name,
#include "cli/verbs.inc"
#undef X
};

/// "bench_op" in the table is "bench op" on the command line, but "bisect_region" and "man_page" have no group.
std::string spoken(std::string name) {
  const std::size_t line = name.find('_');
  if (line != std::string::npos) name[line] = name == "bisect_region" || name == "man_page" ? '-' : ' ';
  return name;
}

TEST(Main, WithoutVerbPrintsHelp) {
  const CommandResult result = run_cermet("");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("Usage: cermet"), std::string::npos);
  EXPECT_NE(result.out.find("Exit codes"), std::string::npos);
  EXPECT_EQ(result.err, "");
}

TEST(Main, PrintsItsVersion) { EXPECT_EQ(run_cermet("--version").out.rfind("cermet ", 0), 0u); }

TEST(Main, EveryVerbHasHelpWithAnExample) {
  for (const std::string& verb : verbs) {
    const CommandResult result = run_cermet(spoken(verb) + " --help");
    EXPECT_EQ(result.code, 0) << verb;
    EXPECT_TRUE(result.out.find("Example:\n  cermet " + spoken(verb)) != std::string::npos ||
                result.out.find("Examples:\n  cermet " + spoken(verb)) != std::string::npos)
        << verb << "\n"
        << result.out;
    EXPECT_NE(result.out.find("--json"), std::string::npos) << verb;
  }
}

TEST(Main, VerbInBrokenTextIsQuoted) { expect_mistake("\"$(printf 'a\\377\\nb')\"", {"no such command: \"a\\"}); }

TEST(Main, UnknownOptionsAreRefusedByEveryVerb) {
  for (const std::string& verb : verbs) {
    const CommandResult result = run_cermet(spoken(verb) + " --no-such-option");
    EXPECT_EQ(result.code, 2) << verb;
    EXPECT_NE(result.err.find("--help"), std::string::npos) << verb << "\n" << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << verb << "\n" << result.err;
  }
}

TEST(Main, MistakesOfTheCommandLineSayWhatWasExpected) {
  expect_mistake("run models/demo --threads q", {"--threads: expected 0 to 1024, found \"q\"", "cermet run --help"});
  expect_mistake("bench model models/demo --batch 0",
                 {"--batch: expected 1 to 4096, found 0", "cermet bench model --help"});
  expect_mistake("run models/demo -n 1 -n 2", {"--new-tokens: expected one value, found 2"});
  expect_mistake("run models/demo -n", {"--new-tokens: expected <N>, found nothing"});
  expect_mistake("explain", {"MODEL: expected a value, found none"});
  expect_mistake("logits models/demo --ids 1 --foo 0",
                 {"unexpected argument '--foo' (usage: cermet logits [OPTIONS] <MODEL>; see `cermet logits --help`)"});
  expect_mistake("bench op linear", {"--shape: expected operand types, as in --shape", "found none"});
  expect_mistake("bench op linear --shape 'x=f32[2,64] w=f32[32,64]' --config 'foo: a=1'",
                 {"--config: expected fields of one kernel", "found \"foo: a=1\""});
  expect_mistake("run models/demo --ids 1 --context 0", {"--context: expected 1 to 1073741824, found 0"});
}

TEST(Main, ValuesOfAnotherTypeAreNamed) {
  expect_mistake("run models/demo -n x", {"--new-tokens: expected 0 to 1073741824, found \"x\"", "cermet run --help"});
}

TEST(Main, FullDiskIsTold) {
  const CommandResult result = run_cermet("env >/dev/full");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("standard output"), std::string::npos) << result.err;
}

TEST(Env, ListsInstructionSetsDevicesAndEveryVariable) {
  const CommandResult result = run_cermet("env --json", "", "CERMET_THREADS=3");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = result.json();
  // A build for this machine alone begins with the least instruction set that it was compiled for.
  const auto& sets = json["instruction_sets"];
  EXPECT_TRUE(sets[0] == "baseline" || json["instruction_set"] == sets.back()) << sets;
  EXPECT_NE(std::ranges::find(sets, json["instruction_set"]), sets.end()) << sets;
  EXPECT_EQ(json["devices"][0], "cpu");
  EXPECT_EQ(json["devices"][1], "null");
  // A GPU or the reason for none, a compiler or the reason for none.
  EXPECT_NE(json["devices"].size() > 2, json["cuda_problem"].is_string()) << json["cuda_problem"];
  EXPECT_NE(json["gpu_compiler"]["version"].is_string(), json["gpu_compiler"]["problem"].is_string())
      << json["gpu_compiler"];
  EXPECT_TRUE(json["kernel_cache"]["folder"].is_string());
  EXPECT_GT(json["cuda_kernels"], 10);
  bool found = false;
  for (const auto& variable : json["variables"]) {
    if (variable["name"] != "CERMET_THREADS") continue;
    found = true;
    EXPECT_EQ(variable["value"], "3");
    EXPECT_EQ(variable["set"], true);
  }
  EXPECT_TRUE(found);
  for (const auto& variable : json["variables"])
    EXPECT_NE(run_cermet("env").out.find(variable["name"].get<std::string>()), std::string::npos);
}

TEST(Env, SaysWhyThereIsNoPlugin) {
  const CommandResult result = run_cermet("env --json", "", "CERMET_CUDA_PLUGIN=/no/such/plugin.so");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["devices"], nlohmann::json::array({"cpu", "null"}));
  for (const auto& problem : {result.json()["cuda_problem"], result.json()["gpu_compiler"]["problem"]})
    EXPECT_NE(problem.get<std::string>().find("/no/such/plugin.so"), std::string::npos) << problem;
  EXPECT_NE(run_cermet("env", "", "CERMET_CUDA_PLUGIN=/no/such/plugin.so").out.find("no CUDA device"),
            std::string::npos);
}

TEST(Env, AnInstructionSetThatIsNoneIsAMistake) {
  const CommandResult result = run_cermet("env", "", "CERMET_CPU_ISA=mmx");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("CERMET_CPU_ISA"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace cermet::test
