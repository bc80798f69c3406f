// Engines that share experts, as a user runs them: results of one engine, over ranks of every kind, and ends where one
// is killed.
#include <sstream>

#include "device/cuda/plugin.hpp"
#include "tests/cli/ranks.hpp"

namespace cermet::test {
namespace {

TEST(SharedExperts, ResultsAreThoseOfOneEngineInTheirOrder) {
  const ScratchFolder folder;
  const std::string run = shared(ids_file(folder, 5));
  const CommandResult one = run_cermet(run);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run_cermet(run + " --data-parallel 4 --expert-parallel 4 --overlap-experts").out, one.out);
  EXPECT_EQ(run_cermet("launch -n 2 -- " + run + " --data-parallel 2 --expert-parallel 2").out, one.out);
  const std::string gather = run + " --expert-exchange gather";
  EXPECT_EQ(run_cermet(gather + " --data-parallel 4 --expert-parallel 4").out, one.out);
  EXPECT_EQ(run_cermet("launch -n 2 -- " + gather + " --data-parallel 2 --expert-parallel 2").out, one.out);
  if (!mpirun(2).empty()) {
    EXPECT_EQ(output_of(mpirun(2) + run + " --data-parallel 2 --expert-parallel 2"), one.out);
    EXPECT_EQ(output_of(mpirun(2) + gather + " --data-parallel 2 --expert-parallel 2"), one.out);
  }
}

TEST(SharedExperts, Mistakes) {
  const ScratchFolder folder;
  const std::string file = ids_file(folder, 2), five = "tests/model/data/reference/qwen3moe-bias-top1-bf16";
  const auto without_json = [](std::string text) { return text.substr(0, text.find(" --json")); };
  expect_mistake(without_json(shared(file, five)) + " --data-parallel 2 --expert-parallel 2",
                 {"expected ranks that divide the 5 experts", "found 2 ranks"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 3 --expert-parallel 2",
                 {"expert_parallel: expected a divisor of the 3 engines", "found 2"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 2 --overlap-experts",
                 {"overlap_experts: expected data_parallel and expert_parallel above 1"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 2 --expert-exchange gather",
                 {"expert_exchange: expected data_parallel and expert_parallel above 1", "found 2 and 1"});
  const std::string both = without_json(shared(file)) + " --data-parallel 2 --expert-parallel 2 ";
  expect_mistake(both + "--expert-exchange all", {"--expert-exchange: expected rows or gather", "found \"all\""});
  expect_mistake(both + "--expert-exchange gather --overlap-experts",
                 {"overlap_experts: expected expert_exchange rows with it, found gather"});
  expect_mistake(both + "--device cuda --expert-exchange rows",
                 {"expert_exchange: expected gather on GPUs", "found rows"});
  expect_mistake(both + "--device cuda --overlap-experts",
                 {"overlap_experts: expected expert_exchange rows with it, found gather"});
  const CommandResult differ = run_cermet(
      "launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then O=; else O=--overlap-experts; fi; exec " CERMET_BINARY_DIR
      "/bin/cermet " +
      shared(file) + " --data-parallel 2 --expert-parallel 2 $O'");
  EXPECT_NE(differ.code, 0);
  EXPECT_NE(differ.err.find("model: expected that of rank 0"), std::string::npos) << differ.err;
}

std::vector<nlohmann::json> ids_of(const std::string& command) {
  const CommandResult result = run_cermet(command);
  EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
  std::vector<nlohmann::json> ids;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) ids.push_back(nlohmann::json::parse(line)["ids"]);
  return ids;
}

TEST(SharedExperts, RanksOnGpusChooseTheTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string file = ids_file(folder, 5);
  for (const std::string model : {"mixtral-bf16", "qwen3moe-bf16"}) {
    const std::string run = shared(file, "tests/model/data/reference/" + model) + " --device cuda";
    const std::vector<nlohmann::json> one = ids_of(run);
    ASSERT_EQ(one.size(), 5u);
    for (const std::string ranks : {"--data-parallel 2 --expert-parallel 2", "--data-parallel 4 --expert-parallel 4"})
      EXPECT_EQ(ids_of(run + " " + ranks), one) << model << " " << ranks;
    EXPECT_EQ(ids_of("launch -n 2 -- " + run + " --data-parallel 2 --expert-parallel 2"), one) << model;
  }
}

/// Each group knows nothing of the other, with which it shares the GPU where there is one alone.
TEST(SharedExperts, GroupsOfRanksOnGpusChooseTheTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string run = shared(ids_file(folder, 5)) + " --device cuda";
  EXPECT_EQ(ids_of(run + " --data-parallel 4 --expert-parallel 2"), ids_of(run));
}

/// Where weights are quantized, sums in another order may change a code, and what follows: most tokens are those of one
/// engine.
TEST(SharedExperts, RanksOnGpusWithQuantizedWeightsChooseMostTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string file = ids_file(folder, 5);
  for (const std::string weights : {"i8", "f8_e4m3"}) {
    const std::string run =
        shared(file, "tests/model/data/reference/mixtral-bf16") + " --device cuda --weights " + weights;
    const std::vector<nlohmann::json> one = ids_of(run), two = ids_of(run + " --data-parallel 2 --expert-parallel 2");
    ASSERT_EQ(one.size(), two.size());
    std::size_t equal = 0, all = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].size(), two[i].size());
      for (std::size_t t = 0; t < one[i].size(); ++t) equal += one[i][t] == two[i][t];
      all += one[i].size();
    }
    EXPECT_GE(2 * equal, all) << weights << ": " << equal << " of " << all;
  }
}

TEST(SharedExperts, RanksOnGpusWithinOneLaunchChooseTheTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string run = shared(ids_file(folder, 5)) + " --device cuda";
  EXPECT_EQ(
      ids_of(run + " --data-parallel 2 --expert-parallel 2 --super-kernel decode --super-kernel-options width=16"),
      ids_of(run));
}

TEST(LongSharedExperts, OfEveryKindOverEveryNumberOfRanks) {
  const ScratchFolder folder;
  const std::string file = ids_file(folder, 11);
  for (const std::string model : {"mixtral-bf16", "qwen3moe-bf16", "qwen3moe-mixed-f32"})
    for (const std::string weights : {"", " --weights i8", " --weights f8_e4m3", " --weights bf16 --kv-cache i8"}) {
      const std::string run = shared(file, "tests/model/data/reference/" + model) + weights;
      const std::string one = run_cermet(run).out;
      ASSERT_NE(one, "") << run;
      for (const int n : {2, 4})
        for (const std::string way : {"", " --overlap-experts", " --expert-exchange gather"}) {
          const std::string both = fmt::format("{} --data-parallel {} --expert-parallel {}{}", run, n, n, way);
          EXPECT_EQ(run_cermet(both).out, one) << both;
          EXPECT_EQ(run_cermet(fmt::format("launch -n {} -- {}", n, both)).out, one) << both;
        }
    }
}

TEST(LongSharedExperts, ARankThatIsKilledEndsTheOthers) {
  const ScratchFolder folder;
  const std::string many = shared(prompts_file(folder, 900), "models/demo") + " --ignore-eos -n 500 ";
  for (unsigned seed = 0; seed < 5; ++seed) {
    kill_one(CERMET_BINARY_DIR "/bin/cermet launch -n 4 -- ", 4, many + "--data-parallel 4 --expert-parallel 2",
             seed + 500);
    for (const std::string way : {"--overlap-experts", "--expert-exchange gather"})
      kill_one(CERMET_BINARY_DIR "/bin/cermet launch -n 2 -- ", 2,
               many + "--data-parallel 2 --expert-parallel 2 " + way, seed + 600);
  }
}

TEST(LongSharedExperts, ARankOnAGpuThatIsKilledEndsTheOthers) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string many = shared(prompts_file(folder, 9000), "models/demo") + " --ignore-eos -n 500 --device cuda ";
  for (unsigned seed = 0; seed < 5; ++seed)
    kill_one(CERMET_BINARY_DIR "/bin/cermet launch -n 2 -- ", 2, many + "--data-parallel 2 --expert-parallel 2",
             seed + 700, std::chrono::milliseconds(2500));
}

}  // namespace
}  // namespace cermet::test
