// Models over several ranks, as a user runs them: experts and prompts that are spread, processes of `cermet launch` and
// of mpirun, and ranks that are killed.
#include "device/cuda/plugin.hpp"
#include "tests/cli/ranks.hpp"

namespace cermet::test {
namespace {

const std::string ids = "run " + mixture + " --ids 5,6,7,8,9 -n 12 --dtype f32 --json";

TEST(ExpertParallel, ThreadsAndProcessesChooseTheTokensOfOneRank) {
  const CommandResult one = run_cermet(ids);
  ASSERT_EQ(one.code, 0) << one.err;
  for (const std::string start : {"--expert-parallel 3 --threads 3", "--tensor-parallel 2 --expert-parallel 2"}) {
    const CommandResult result = run_cermet(ids + " " + start);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.json()["ids"], one.json()["ids"]) << start;
  }
  const CommandResult launched = run_cermet("launch -n 2 -- " + ids + " --expert-parallel 2");
  ASSERT_EQ(launched.code, 0) << launched.err;
  EXPECT_EQ(launched.json()["ids"], one.json()["ids"]);
}

TEST(ExpertParallel, VerbsThatLoadAModelTakeIt) {
  EXPECT_EQ(run_cermet("logits " + mixture + " --ids 5,6,7 --expert-parallel 2 --json").json()["logits"].size(), 3u);
  EXPECT_EQ(run_cermet("bench model " + mixture + " --prompt-tokens 8 -n 4 --repeat 1 --expert-parallel 2").code, 0);
}

TEST(ExpertParallel, Mistakes) {
  expect_mistake("run " + tiny + " --ids 5 --expert-parallel 2",
                 {"expert parallel: expected a mixture of experts, found LlamaForCausalLM"});
  expect_mistake("run " + mixture + " --ids 5 --expert-parallel 17",
                 {"expected at most a rank for each of 16 experts, found 17 ranks"});
  expect_mistake("run " + mixture + " --ids 5 --tensor-parallel 4 --expert-parallel 3",
                 {"expert_parallel: expected a divisor of the 4 ranks", "found 3"});
}

std::string spread(const std::string& file) {
  return "run models/demo --prompts " + file + " --batch 2 --dtype f32 --json";
}

TEST(DataParallel, ResultsAreThoseOfOneEngineInTheirOrder) {
  const ScratchFolder folder;
  const std::string run = spread(prompts_file(folder, 7));
  const CommandResult one = run_cermet(run);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run_cermet(run + " --data-parallel 3").out, one.out);
  EXPECT_EQ(run_cermet("launch -n 2 -- " + run + " --data-parallel 2").out, one.out);
}

TEST(DataParallel, Mistakes) {
  expect_mistake("run models/demo -p hello --data-parallel 2",
                 {"--data-parallel: expected --prompts with it, found none"});
  const ScratchFolder folder;
  const std::string run = spread(prompts_file(folder, 2));
  const CommandResult three = run_cermet("launch -n 3 -- " + run + " --data-parallel 2");
  EXPECT_EQ(three.code, 2);
  EXPECT_NE(three.err.find("data_parallel: expected 3, the processes that were started together, found 2"),
            std::string::npos)
      << three.err;
}

TEST(DataParallel, EnginesWithDifferentModelsAreRefusedAtTheStart) {
  const ScratchFolder folder;
  const std::string file = folder.file("ids.jsonl", "{\"ids\": [5, 6]}\n{\"ids\": [7]}\n").string();
  const CommandResult result =
      run_cermet("launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then M=" + tiny + "; else M=" + mixture +
                 "; fi; exec " CERMET_BINARY_DIR "/bin/cermet run $M --prompts " + file + " -n 1 --data-parallel 2'");
  EXPECT_NE(result.code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("model: expected that of rank 0"), std::string::npos) << result.err;
}

/// Ranks share the GPU where there is one alone.
TEST(ParallelRun, RanksOnGpusChooseTheTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string prompts = "run models/demo --device cuda --json --batch 2 --prompts " + prompts_file(folder, 4);
  EXPECT_EQ(run_cermet(prompts + " --data-parallel 2").out, run_cermet(prompts).out);
  const std::string one = "run models/demo --device cuda --json -p 'The PostgreSQL server' -n 12",
                    two = one + " --tensor-parallel 2";
  const nlohmann::json wanted = run_cermet(one).json()["ids"];
  EXPECT_EQ(run_cermet(two).json()["ids"], wanted);
  EXPECT_EQ(run_cermet(two + " --super-kernel decode --super-kernel-options width=16").json()["ids"], wanted)
      << "collectives within one launch";
}

/// Passes of many tokens, whose rows ranks share: sums are rounded to 16 bits there, so that perplexities agree and not
/// every bit.
TEST(ParallelRun, RanksOnGpusThatShareRowsFindTheSamePerplexity) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const std::string eval = "eval models/demo --device cuda --json --text README.md --window 301 --chars 9000";
  const double one = run_cermet(eval).json()["perplexity"].get<double>();
  EXPECT_GT(one, 1);
  for (const std::string ranks : {" --tensor-parallel 2", " --tensor-parallel 3",
                                  " --tensor-parallel 2 --expert-parallel 2", " --tensor-parallel 2 --weights i8"}) {
    const CommandResult shared = run_cermet(eval + ranks);
    ASSERT_EQ(shared.code, 0) << shared.err;
    EXPECT_NEAR(shared.json()["perplexity"].get<double>() / one, 1, ranks.ends_with("i8") ? 0.02 : 0.004) << ranks;
  }
}

TEST(ParallelRun, MpiProcessesComputeWhatOneDoes) {
  if (mpirun(2).empty()) GTEST_SKIP() << "the build has found no MPI";
  EXPECT_EQ(nlohmann::json::parse(output_of(mpirun(2) + ids + " --expert-parallel 2"))["ids"],
            run_cermet(ids).json()["ids"]);
}

TEST(LongParallelRun, EveryWayOverEveryNumberOfRanks) {
  const ScratchFolder folder;
  const std::string run = spread(prompts_file(folder, 11));
  const std::string one = run_cermet(run).out;
  for (const int n : {2, 3, 4, 8}) {
    EXPECT_EQ(run_cermet(fmt::format("{} --data-parallel {}", run, n)).out, one);
    EXPECT_EQ(run_cermet(fmt::format("launch -n {} -- {} --data-parallel {}", n, run, n)).out, one);
    EXPECT_EQ(run_cermet(fmt::format("launch -n {} -- {} --expert-parallel {}", n, run, n)).out, one);
    if (!mpirun(n).empty()) {
      EXPECT_EQ(output_of(fmt::format("{}{} --data-parallel {}", mpirun(n), run, n)), one);
      EXPECT_EQ(output_of(fmt::format("{}{} --tensor-parallel {}", mpirun(n), run, n)), one);
    }
  }
  for (const std::string both :
       {"--data-parallel 2 --tensor-parallel 2", "--data-parallel 2 --tensor-parallel 2 --expert-parallel 2",
        "--data-parallel 4 --expert-parallel 2", "--data-parallel 4 --expert-parallel 4 --overlap-experts",
        "--data-parallel 4 --expert-parallel 2 --expert-exchange gather"}) {
    EXPECT_EQ(run_cermet(run + " " + both).out, one) << both;
    EXPECT_EQ(run_cermet("launch -n 4 -- " + run + " " + both).out, one) << both;
    if (!mpirun(4).empty()) {
      EXPECT_EQ(output_of(mpirun(4) + run + " " + both), one) << both;
    }
  }
}

TEST(LongParallelRun, ARankThatIsKilledEndsTheOthers) {
  const ScratchFolder folder;
  const std::string endless = "run models/demo -p hello -n 2000 --ignore-eos ",
                    many = "run models/demo --ignore-eos -n 500 --batch 2 --prompts " + prompts_file(folder, 900);
  const auto launch = [](int ranks) { return fmt::format(CERMET_BINARY_DIR "/bin/cermet launch -n {} -- ", ranks); };
  for (unsigned seed = 0; seed < 5; ++seed) {
    kill_one(launch(2), 2, endless + "--tensor-parallel 2", seed);
    kill_one(launch(3), 3, endless + "--expert-parallel 3", seed + 100);
    kill_one(launch(3), 3, many + " --data-parallel 3", seed + 200);
    kill_one(launch(4), 4, many + " --data-parallel 2 --tensor-parallel 2", seed + 300);
    if (!mpirun(2).empty()) kill_one(mpirun(2), 2, endless + "--tensor-parallel 2", seed + 400);
  }
}

/// Twenty times, while ranks that share the GPU where there is one alone read, compile, capture or replay.
TEST(LongParallelRun, ARankOnAGpuThatIsKilledEndsTheOthers) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  for (unsigned seed = 0; seed < 10; ++seed)
    for (const int ranks : {2, 4})
      kill_one(fmt::format(CERMET_BINARY_DIR "/bin/cermet launch -n {} -- ", ranks), ranks,
               fmt::format(
                   "run models/demo --device cuda -p hello -n 60000 --context 65536 --ignore-eos --tensor-parallel {}",
                   ranks),
               1000 + seed * 10 + static_cast<unsigned>(ranks), std::chrono::milliseconds(2500));
}

}  // namespace
}  // namespace cermet::test
