// Models whose matrices several ranks share: threads of one process, and processes that were launched together.
#include "tests/cli/command.hpp"
#include "tests/comm/background.hpp"

namespace cermet::test {
namespace {

const std::string prompt = "run models/demo -p 'The PostgreSQL server' -n 12 --dtype f32 --json";

nlohmann::json sharded_ids(const std::string& command) {
  const CommandResult result = run_cermet(command);
  EXPECT_EQ(result.code, 0) << command << ": " << result.err;
  return result.code == 0 ? result.json()["ids"] : nlohmann::json();
}

TEST(TensorParallel, ThreadsAndProcessesChooseTheTokensOfOneRank) {
  const nlohmann::json one = sharded_ids(prompt);
  EXPECT_EQ(sharded_ids(prompt + " --tensor-parallel 2"), one);
  EXPECT_EQ(sharded_ids(prompt + " --tensor-parallel 3 --threads 3"), one)
      << "heads and vocabulary that 3 does not divide";
  EXPECT_EQ(sharded_ids("launch -n 2 -- " + prompt + " --tensor-parallel 2"), one);
}

TEST(TensorParallel, RankZeroAlonePrints) {
  const CommandResult result = run_cermet("launch -n 3 -- logits " + tiny + " --ids 5,6,7 --tensor-parallel 3 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["logits"].size(), 3u);
}

TEST(TensorParallel, EveryVerbThatLoadsAModelTakesIt) {
  EXPECT_EQ(run_cermet("bench model " + tiny + " --prompt-tokens 8 -n 4 --repeat 1 --tensor-parallel 2").code, 0);
  EXPECT_EQ(run_cermet("run " + tiny + " --ids 5,6,7 -n 2 --device null --tensor-parallel 2").code, 0);
}

TEST(TensorParallel, RanksThatDoNotFitAreRefused) {
  const CommandResult launched = run_cermet("launch -n 2 -- run " + tiny + " --ids 5 -n 1");
  EXPECT_EQ(launched.code, 2);
  EXPECT_NE(launched.err.find("tensor_parallel: expected 2, the processes that were started together, found 1"),
            std::string::npos)
      << launched.err;
  const CommandResult none = run_cermet("run " + tiny + " --ids 5 --tensor-parallel 0");
  EXPECT_EQ(none.code, 2);
}

TEST(TensorParallel, RanksWithDifferentModelsAreRefusedAtTheStart) {
  const std::string other = "tests/model/data/reference/mistral-window-bf16";
  const CommandResult result =
      run_cermet("launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then M=" + tiny + "; else M=" + other +
                 "; fi; exec " CERMET_BINARY_DIR "/bin/cermet run $M --ids 5 -n 1 --tensor-parallel 2'");
  EXPECT_NE(result.code, 0);
  EXPECT_NE(result.err.find("model: expected that of rank 0"), std::string::npos) << result.err;
}

// Ranks agree on each token between passes, so that a kill may fall behind a region: one of a few has to fall into it.
TEST(TensorParallel, ARankThatIsKilledEndsTheOthersWhichNameIt) {
  bool in_region = false;
  for (int attempt = 0; attempt < 12 && !in_region; ++attempt) {
    Background run("env --chdir=" CERMET_SOURCE_DIR " " CERMET_BINARY_DIR
                   "/bin/cermet launch -n 2 -- run models/demo -p hello -n 2000 --ignore-eos --tensor-parallel 2 "
                   "--super-kernel decode");
    const std::vector<pid_t> processes = joined_ranks(run, 2);
    ASSERT_FALSE(processes.empty()) << run.err();
    for (int wait = 0; run.out().size() < 30 && wait < 2000; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until it decodes
    std::this_thread::sleep_for(std::chrono::microseconds(300 * attempt));
    kill(processes[1], SIGKILL);
    ASSERT_EQ(run.wait(std::chrono::seconds(10)), 2) << run.err();
    in_region = run.err().rfind("cermet: error: super-kernel 'decode', launch ", 0) == 0;
    // A collective under way is named by its call, the exchange of a token by the call before it.
    const bool names_call = run.err().find("rank 0 of 2: call ") != std::string::npos ||
                            run.err().find("rank 0 of 2: after call ") != std::string::npos;
    EXPECT_TRUE(names_call) << run.err();
    EXPECT_NE(run.err().find("rank 1 is gone"), std::string::npos) << run.err();
    EXPECT_EQ(run.err().find("not all ended as they should"), std::string::npos) << run.err();
  }
  EXPECT_TRUE(in_region);
}

}  // namespace
}  // namespace cermet::test
