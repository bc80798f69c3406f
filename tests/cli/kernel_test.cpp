// cermet kernel: a kernel in C from its manifest to a benchmark, and what is said of mistakes.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

const fs::path example = fs::path(CERMET_BINARY_DIR) / "examples/kernels/cpu/rms_norm.json";

struct KernelVerbs : testing::Test {
  ScratchFolder scratch;
  CommandResult run(const std::string& arguments, const std::string& before = "") {
    return run_cermet(arguments, "", "CERMET_CACHE_DIR=" + (scratch / "cache").string() + " " + before);
  }
};

TEST_F(KernelVerbs, AKernelInCIsAddedListedExplainedRunAndRemoved) {
  const CommandResult none = run("kernel list");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_NE(none.out.find("0 kernels from outside"), std::string::npos);
  const CommandResult added = run("kernel add " + example.string());
  ASSERT_EQ(added.code, 0) << added.err;
  EXPECT_EQ(added.out.rfind("added mine.rms_norm for rms_norm: passed ", 0), 0u) << added.out;
  const auto list = run("kernel list --json").json();
  ASSERT_EQ(list["kernels"].size(), 1u);
  EXPECT_EQ(list["kernels"][0]["kernel"], "mine.rms_norm");
  EXPECT_EQ(list["kernels"][0]["operator"], "rms_norm");
  EXPECT_EQ(list["kernels"][0]["kind"], "shared_object");
  ASSERT_EQ(list["kernels"][0]["checks"].size(), 1u);
  EXPECT_TRUE(list["kernels"][0]["checks"][0]["failure"].is_null());
  EXPECT_GT(list["kernels"][0]["checks"][0]["taken"], 5);
  const std::string call = "'f32[4,64] f32[64]'";
  const auto explained = run("explain op rms_norm --shape " + call + " --json").json();
  EXPECT_EQ(explained["candidates"].back()["kernel"], "mine.rms_norm");
  EXPECT_TRUE(explained["candidates"].back()["decline"].is_null());
  EXPECT_NE(explained["kernel"], "mine.rms_norm");
  const auto declined = run("explain op rms_norm --shape 'bf16[4,64] bf16[64]' --json").json();
  EXPECT_EQ(declined["candidates"].back()["decline"], "takes no x of bf16");
  const auto forced =
      run("explain op rms_norm --shape " + call + " --json", "CERMET_CONFIG='mine.rms_norm: default'").json();
  EXPECT_EQ(forced["kernel"], "mine.rms_norm");
  const CommandResult bench =
      run("bench op rms_norm --shape " + call + " --kernel mine.rms_norm --seconds 0.01 --json");
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_EQ(bench.json()["kernel"], "mine.rms_norm");
  const CommandResult off =
      run("explain op rms_norm --shape " + call + " --json", "CERMET_DISABLE_KERNELS=mine.rms_norm");
  EXPECT_EQ(off.json()["candidates"].back()["decline"], "switched off by CERMET_DISABLE_KERNELS");
  const CommandResult again = run("kernel check mine.rms_norm --device cpu --json");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.json()["unchecked"].is_null());
  EXPECT_EQ(run("kernel remove mine.rms_norm").out, "removed mine.rms_norm\n");
  EXPECT_EQ(run("kernel list --json").json()["kernels"].size(), 0u);
  const CommandResult gone = run("kernel remove mine.rms_norm");
  EXPECT_EQ(gone.code, 2);
  EXPECT_NE(gone.err.find("expected one that was added"), std::string::npos) << gone.err;
}

TEST_F(KernelVerbs, AModelTakesOneWhereItWasMeasuredToBeTheFastestAndComputesTheSame) {
  ASSERT_EQ(run("kernel add " + example.string()).code, 0);
  const std::string model = tiny + " --mode none --threads 2";
  const std::string norm =
      "'f32[T,96] f32[96] eps=1e-06 out_dtype=f32' --constant weight --threads 2 --json --tokens ";  // as the model has
                                                                                                     // it
  const auto tuned = run("tune op rms_norm --dry --search exhaustive --seconds 0.001 --shapes " + norm + "32").json();
  bool tried = false;
  for (const auto& candidate : tuned["results"][0]["tried"])
    tried = tried || (candidate["kernel"] == "mine.rms_norm" && candidate["state"] != "wrong");
  EXPECT_TRUE(tried) << "a tuner measures it beside the others: " << tuned;
  nlohmann::json entry{{"region", tuned["results"][0]["region"]},
                       {"device", tuned["device"]},
                       {"versions", tuned["versions"]},
                       {"kernel", "mine.rms_norm"},
                       {"config", "default"},
                       {"seconds", 1e-6},
                       {"spread", 1e-8},
                       {"date", "2026-03-01 14:05:09"},
                       {"rivals", nlohmann::json::array()}};
  const auto table = scratch.file("table.json", nlohmann::json{{"cermet_tuning", 1}, {"entries", {entry}}}.dump());
  const std::string with = "CERMET_TUNING=" + table.string(), without = "CERMET_TUNING=off";
  const auto kernel_for = [&](const char* tokens, const std::string& tuning) {
    return run("explain op rms_norm --shape " + norm + tokens, tuning).json()["kernel"];
  };
  EXPECT_EQ(kernel_for("32", with), "mine.rms_norm");
  EXPECT_NE(kernel_for("64", with), "mine.rms_norm") << "nowhere else";
  EXPECT_NE(kernel_for("32", without), "mine.rms_norm");
  const std::string prompt = "run " + model + " --ids 3,5,7,11,13,17,19,23 -n 12 --ignore-eos --json";
  const auto chosen = run(prompt, with), own = run(prompt, without);
  ASSERT_EQ(chosen.code, 0) << chosen.err;
  EXPECT_EQ(chosen.json()["ids"], own.json()["ids"]);
}

TEST_F(KernelVerbs, ManifestsAreCheckedWithoutBeingAdded) {
  const CommandResult checked = run("kernel check " + example.string());
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(run("kernel list --json").json()["kernels"].size(), 0u);
}

TEST_F(KernelVerbs, TheCacheLeavesThemAlone) {
  ASSERT_EQ(run("kernel add " + example.string()).code, 0);
  EXPECT_EQ(run("cache clear").code, 0);
  EXPECT_TRUE(run("cache verify --json").json()["strangers"].empty());
  EXPECT_EQ(run("kernel list --json").json()["kernels"].size(), 1u);
}

TEST_F(KernelVerbs, ADamagedOneIsListedAndIgnored) {
  ASSERT_EQ(run("kernel add " + example.string()).code, 0);
  std::ofstream(scratch / "cache/foreign/mine.rms_norm/manifest.json") << "{";
  const CommandResult list = run("kernel list");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("ignored: "), std::string::npos) << list.out;
  const CommandResult explained = run("explain op rms_norm --shape 'f32[4,64] f32[64]'");
  EXPECT_EQ(explained.code, 0);
  EXPECT_NE(explained.err.find("is not used: "), std::string::npos) << explained.err;
}

TEST(KernelVerbMistakes, AreTold) {
  expect_mistake("kernel",
                 {"kernel: expected a command (add, list, check, remove), found nothing", "cermet kernel --help"});
  expect_mistake("kernel drop", {"no such command: kernel drop", "cermet kernel --help"});
  expect_mistake("kernel chek", {"did you mean kernel check?"});
  expect_mistake("kernel add no/such/manifest.json", {"no/such/manifest.json"});
  expect_mistake("kernel add README.md", {"README.md"});
  expect_mistake("kernel add examples/kernels/cuda/rms_norm.json --timeout 0", {"--timeout"});
  const CommandResult help = run_cermet("kernel --help");
  EXPECT_EQ(help.out.find("\n  cases "), std::string::npos) << "the verb that a check starts is the program's own\n"
                                                            << help.out;
}

}  // namespace
}  // namespace cermet::test
