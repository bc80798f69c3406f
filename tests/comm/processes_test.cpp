// Ranks that are processes: `cermet launch`, variables as torchrun sets them, and mpirun where the build has found MPI.
#include <random>

#include "tests/cli/command.hpp"
#include "tests/comm/background.hpp"

namespace cermet::test {
namespace {

const std::string cermet = CERMET_BINARY_DIR "/bin/cermet ";
const std::string mpirun = "mpirun --allow-run-as-root --oversubscribe ";

/// How a test starts ranks: a command line up to what each runs.
struct Starter {
  const char* name;
  const char* engine;
  std::string (*command)(int ranks);
};
void PrintTo(const Starter& starter, std::ostream* out) { *out << starter.name; }

const Starter starters[]{
    {"launch", "shared", [](int ranks) { return fmt::format("{}launch -n {} -- ", cermet, ranks); }},
#ifdef CERMET_HAS_MPI
    {"mpirun", "mpi", [](int ranks) { return fmt::format("{}-n {} {}", mpirun, ranks, cermet); }},
#endif
};

class Processes : public testing::TestWithParam<Starter> {};
INSTANTIATE_TEST_SUITE_P(Starters, Processes, testing::ValuesIn(starters),
                         [](const auto& test) { return std::string(test.param.name); });

void expect_conforms(const Starter& starter, int ranks) {
  Background run(starter.command(ranks) + "bench comm --check --op all_reduce --sizes 1K --seconds 0.001 --json");
  ASSERT_EQ(run.wait(std::chrono::seconds(250)), 0) << run.err();
  const auto json = nlohmann::json::parse(run.out());
  EXPECT_EQ(json["engine"], starter.engine);
  EXPECT_EQ(json["ranks"], ranks);
  EXPECT_GT(json["checked_calls"], 300);
  EXPECT_GT(json["rows"][0]["seconds"], 0);
}

TEST_P(Processes, TwoComputeWhatTheStackedOperatorsDefine) { expect_conforms(GetParam(), 2); }
TEST_P(Processes, ThreeComputeWhatTheStackedOperatorsDefine) { expect_conforms(GetParam(), 3); }

TEST_P(Processes, RanksThatMakeDifferentCallsSayWhoMakesWhich) {
  const std::string shell = "sh -c 'exec " + cermet +
                            "bench comm --op all_reduce --sizes $((1024 * (${RANK:-${OMPI_COMM_WORLD_RANK}} + 1)))'";
  std::string command = GetParam().command(2);
  if (command.ends_with(cermet)) command.erase(command.size() - cermet.size());
  Background run(command + shell);
  EXPECT_GT(run.wait(std::chrono::seconds(60)), 0);
  EXPECT_NE(run.err().find("rank 0 of 2: call "), std::string::npos) << run.err();
  EXPECT_NE(run.err().find(", all_reduce of f32[256 x 1] by sum: rank 1 makes call "), std::string::npos) << run.err();
  EXPECT_NE(run.err().find(", all_reduce of f32[512 x 1] by sum: rank 0 makes call "), std::string::npos) << run.err();
}

/// Kills one rank with SIGKILL while all are at work; the others must end within 5 seconds and say which one is gone.
void kill_one(const Starter& starter, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  Background run(starter.command(ranks) + "bench comm --op all_reduce --op all_to_all --sizes 64,300K --seconds 60");
  const std::vector<pid_t> processes = joined_ranks(run, ranks);
  ASSERT_FALSE(processes.empty()) << run.err();
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 300'000));
  const std::size_t victim = random() % processes.size();
  const auto killed = std::chrono::steady_clock::now();
  kill(processes[victim], SIGKILL);
  const int code = run.wait(std::chrono::seconds(20));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - killed).count();
  EXPECT_GT(code, 0) << "seed " << seed;
  EXPECT_LT(seconds, 5) << "seed " << seed << "\n" << run.err();
  const std::string gone = "is gone: process " + std::to_string(processes[victim]) + " has ended", err = run.err();
  std::size_t reports = 0;
  for (std::size_t at = err.find(gone); at != err.npos; at = err.find(gone, at + 1)) ++reports;
  // mpirun may drop what a process writes while it ends all of them.
  const std::size_t expected = starter.engine == std::string("mpi") ? 1 : static_cast<std::size_t>(ranks) - 1;
  EXPECT_GE(reports, expected) << "seed " << seed << "\n" << err;
  EXPECT_NE(err.find(": call "), err.npos) << err;
}

TEST_P(Processes, ARankThatIsKilledEndsTheOthersWhoSayWhichItWas) {
  for (unsigned seed = 0; seed < 5; ++seed) kill_one(GetParam(), 2 + static_cast<int>(seed % 3), seed);
}

class LongProcesses : public Processes {};
INSTANTIATE_TEST_SUITE_P(LongStarters, LongProcesses, testing::ValuesIn(starters),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(LongProcesses, FourComputeWhatTheStackedOperatorsDefine) { expect_conforms(GetParam(), 4); }
TEST_P(LongProcesses, EightComputeWhatTheStackedOperatorsDefine) { expect_conforms(GetParam(), 8); }

TEST_P(LongProcesses, ARankThatIsKilledEndsTheOthersWhoSayWhichItWas) {
  for (unsigned seed = 100; seed < 120; ++seed) kill_one(GetParam(), 2 + static_cast<int>(seed % 3), seed);
}

// ---- Joining ----

TEST(World, VariablesOfTorchrunJoinProcessesOfAHost) {
  const std::string variables = fmt::format("env WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} ", getpid());
  const std::string bench = cermet + "bench comm --op all_gather --sizes 1K --seconds 0.001 --json";
  Background second(variables + "RANK=1 LOCAL_RANK=1 " + bench), first(variables + "RANK=0 LOCAL_RANK=0 " + bench);
  ASSERT_EQ(first.wait(std::chrono::seconds(30)), 0) << first.err();
  ASSERT_EQ(second.wait(std::chrono::seconds(30)), 0) << second.err();
  EXPECT_EQ(nlohmann::json::parse(first.out())["ranks"], 2);
  EXPECT_EQ(second.out(), "");
}

TEST(World, SaysWhatIsWrongWithItsVariables) {
  const auto error = [](const std::string& variables) {
    return run_cermet("bench comm --sizes 64 --seconds 0.001", "", variables).err;
  };
  EXPECT_EQ(error("WORLD_SIZE=2 RANK=2"),
            "cermet: error: RANK: expected a rank below the 2 that there are, found '2'\n");
  EXPECT_EQ(error("WORLD_SIZE=2"), "cermet: error: RANK: expected a rank below the 2 that there are, found ''\n");
  EXPECT_EQ(error("WORLD_SIZE=2 RANK=0"),
            "cermet: error: MASTER_PORT: expected a number that only this run has, or CERMET_JOB, found neither\n");
  EXPECT_EQ(error("WORLD_SIZE=2 RANK=0 CERMET_JOB=a/b"),
            "cermet: error: job: expected a name of up to 128 letters, digits, dots and hyphens, found 'a/b'\n");
  EXPECT_EQ(error("WORLD_SIZE=4 RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=1"),
            "cermet: error: world of 4 ranks: expected all on this host, or mpirun, which joins hosts; found 2 here "
            "(LOCAL_WORLD_SIZE, MASTER_ADDR)\n");
  EXPECT_EQ(error("PMIX_RANK=5 SLURM_STEP_NUM_TASKS=2"),
            "cermet: error: PMIX_RANK: expected a rank below the 2 that there are, found '5'\n");
#ifdef CERMET_HAS_MPI
  EXPECT_NE(error("PMI_RANK=0 PMI_SIZE=3").find("world of 3 ranks: expected an MPI that its launcher can join"),
            std::string::npos);
#endif
  EXPECT_EQ(error("CERMET_COMM=pigeon"),
            "cermet: error: environment variable CERMET_COMM: expected auto, mpi, shared, found \"pigeon\"\n");
  EXPECT_EQ(
      error(fmt::format("WORLD_SIZE=2 RANK=1 CERMET_COMM_TIMEOUT=1 CERMET_JOB=nobody-{}", getpid())),
      fmt::format("cermet: error: rank 1 of 2: rank 0 did not come within 1 s: no shared memory of job nobody-{}\n",
                  getpid()));
  EXPECT_EQ(error(fmt::format("WORLD_SIZE=2 RANK=0 CERMET_COMM_TIMEOUT=1 CERMET_JOB=alone-{}", getpid())),
            "cermet: error: rank 0 of 2: call 1, barrier: rank 1 did not come within 1 s\n");
}

// ---- Launch ----

TEST(Launch, RankZeroSpeaksAndErrorsOfOthersHaveTheirRank) {
  const CommandResult result =
      run_cermet("launch -n 3 -- sh -c 'echo out $RANK $LOCAL_RANK $WORLD_SIZE; echo err $RANK >&2'");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "out 0 0 3\n");
  for (const char* line : {"err 0\n", "[rank 1] err 1\n", "[rank 2] err 2\n"})
    EXPECT_NE(result.err.find(line), std::string::npos) << result.err;
}

TEST(Launch, EndsAsTheFirstRankThatFails) {
  const CommandResult first = run_cermet("launch -n 2 -- sh -c 'test $RANK = 1 || exit 3'");
  EXPECT_EQ(first.code, 3);
  EXPECT_EQ(first.err, "");
  const CommandResult other = run_cermet("launch -n 2 -- sh -c 'exit $((RANK * 7))'");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err, "cermet: error: rank 1 ended with exit code 7\n");
  const CommandResult killed = run_cermet("launch -n 2 --grace 0.2 -- sh -c 'test $RANK = 0 || kill -9 $$; sleep 30'");
  EXPECT_EQ(killed.code, 2);
  EXPECT_EQ(killed.err, "cermet: error: rank 1 was killed by signal 9 (Killed)\n");
  EXPECT_LT(killed.seconds, 5);
}

TEST(Launch, OneJsonValueComesOut) {
  const CommandResult result = run_cermet("launch -n 2 -- bench comm --op nothing --json");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.json()["error"].get<std::string>().find("expected a collective"), std::string::npos);
}

TEST(Launch, Mistakes) {
  expect_mistake("launch -n 2 -- /no/such/program",
                 {"program /no/such/program: cannot be started: No such file or directory"});
  expect_mistake("launch -n 0 -- true", {"--ranks: expected 1 to 1024, found 0"});
  expect_mistake("launch -n 2", {"COMMAND"});
}

TEST(BenchComm, MeasuresThreadsAndPlots) {
  const ScratchFolder folder;
  const std::string plot = (folder / "comm.svg").string();
  const CommandResult result =
      run_cermet("bench comm --ranks 3 --sizes 64..4K --dtype bf16 --seconds 0.002 -o " + plot);
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* text :
       {"3 ranks, engine local, bf16", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "bus rate", "iB/s"})
    EXPECT_NE(result.out.find(text), std::string::npos) << result.out;
  EXPECT_NE(content_of(plot).find("<svg"), std::string::npos);
}

TEST(BenchComm, Mistakes) {
  expect_mistake("bench comm --op silu", {"--op: expected a collective", "\"silu\""});
  expect_mistake("bench comm --sizes 4K..1K", {"--sizes: expected the smaller one first"});
  expect_mistake("bench comm --sizes 4Q", {"--sizes: expected bytes such as 64, 8K or 2M, found \"4Q\""});
  expect_mistake("bench comm --dtype bool", {"--dtype: expected f32, bf16, f16, i32 or i8, found \"bool\""});
  expect_mistake(
      "bench comm --store",
      {"--routes, --store: expected --device cuda without --engine and --norm, found --device cpu, --engine auto"});
  expect_mistake("bench comm --store --device cuda --op all_reduce",
                 {"--store: expected all operators, found 1 of --op"});
  expect_mistake("bench comm --device cuda --engine ring",
                 {"--engine: expected auto, nccl, peer, stamped, one-shot or two-shot, found 'ring'"});
  const CommandResult route = run_cermet("run " + tiny + " --ids 5 -n 1 --device null:sm_90 --tensor-parallel 2", "",
                                         "CERMET_COMM_ROUTE=pigeon");
  EXPECT_EQ(route.err,
            "cermet: error: environment variable CERMET_COMM_ROUTE: expected auto, nccl, peer, stamped, one-shot, "
            "two-shot, found \"pigeon\"\n");
  expect_mistake("bench comm --device tpu", {"--device: expected cpu or cuda, found \"tpu\""});
}

}  // namespace
}  // namespace cermet::test
