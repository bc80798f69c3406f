// Models over several ranks, as a user runs them: experts and prompts that are spread, processes of `cermet launch` and of mpirun, and ranks that are killed.
#include <random>
#include <sstream>

#include "device/cuda/plugin.hpp"
#include "tests/cli/command.hpp"
#include "tests/comm/background.hpp"

namespace cermet::test {
namespace {

const std::string mixture = "tests/model/data/reference/qwen3moe-bf16";
const std::string ids = "run " + mixture + " --ids 5,6,7,8,9 -n 12 --dtype f32 --json";

std::string prompts_file(const ScratchFolder& folder, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{{\"prompt\": \"The index number {}\", \"max_new_tokens\": {}}}\n", i, 4 + 5 * i % 17);
  return folder.file("prompts.jsonl", text).string();
}

/// A command of Open MPI; "" where the build has found none.
std::string mpirun(int ranks) {
#ifdef CERMET_HAS_MPI
  return fmt::format("mpirun --allow-run-as-root --oversubscribe -n {} " CERMET_BINARY_DIR "/bin/cermet ", ranks);
#else
  static_cast<void>(ranks);
  return "";
#endif
}

/// Standard output of a command line that mpirun starts.
std::string output_of(const std::string& command) {
  Background run("env --chdir=" CERMET_SOURCE_DIR " " + command);
  EXPECT_EQ(run.wait(std::chrono::seconds(120)), 0) << command << "\n" << run.err();
  return run.out();
}

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
  expect_mistake("run " + tiny + " --ids 5 --expert-parallel 2", {"expert parallel: expected a mixture of experts, found LlamaForCausalLM"});
  expect_mistake("run " + mixture + " --ids 5 --expert-parallel 17", {"expected at most a rank for each of 16 experts, found 17 ranks"});
  expect_mistake("run " + mixture + " --ids 5 --tensor-parallel 4 --expert-parallel 3", {"expert_parallel: expected a divisor of the 4 ranks", "found 3"});
}

std::string spread(const std::string& file) { return "run models/demo --prompts " + file + " --batch 2 --dtype f32 --json"; }

TEST(DataParallel, ResultsAreThoseOfOneEngineInTheirOrder) {
  const ScratchFolder folder;
  const std::string run = spread(prompts_file(folder, 7));
  const CommandResult one = run_cermet(run);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run_cermet(run + " --data-parallel 3").out, one.out);
  EXPECT_EQ(run_cermet("launch -n 2 -- " + run + " --data-parallel 2").out, one.out);
}

TEST(DataParallel, Mistakes) {
  expect_mistake("run models/demo -p hello --data-parallel 2", {"--data-parallel: expected it with run --prompts", "found 2"});
  const ScratchFolder folder;
  const std::string run = spread(prompts_file(folder, 2));
  const CommandResult three = run_cermet("launch -n 3 -- " + run + " --data-parallel 2");
  EXPECT_EQ(three.code, 2);
  EXPECT_NE(three.err.find("data_parallel: expected 3, the processes that were started together, found 2"), std::string::npos) << three.err;
}

std::string shared(const std::string& file, const std::string& model = mixture) {
  return "run " + model + " --prompts " + file + " --batch 2 --dtype f32 --json";
}

std::string ids_file(const ScratchFolder& folder, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{{\"ids\": [{}, 7, {}], \"max_new_tokens\": {}}}\n", 5 + i, 40 - i, 3 + 5 * i % 11);
  return folder.file("ids.jsonl", text).string();
}

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
  expect_mistake(without_json(shared(file, five)) + " --data-parallel 2 --expert-parallel 2", {"expected ranks that divide the 5 experts", "found 2 ranks"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 3 --expert-parallel 2", {"expert_parallel: expected a divisor of the 3 engines", "found 2"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 2 --overlap-experts", {"overlap_experts: expected data_parallel and expert_parallel above 1"});
  expect_mistake(without_json(shared(file)) + " --data-parallel 2 --expert-exchange gather",
                 {"expert_exchange: expected data_parallel and expert_parallel above 1", "found 2 and 1"});
  const std::string both = without_json(shared(file)) + " --data-parallel 2 --expert-parallel 2 ";
  expect_mistake(both + "--expert-exchange all", {"--expert-exchange: expected rows or gather", "found \"all\""});
  expect_mistake(both + "--expert-exchange gather --overlap-experts", {"overlap_experts: expected expert_exchange rows with it, found gather"});
  expect_mistake(both + "--device cuda --expert-exchange rows", {"expert_exchange: expected gather on GPUs", "found rows"});
  expect_mistake(both + "--device cuda --overlap-experts", {"overlap_experts: expected expert_exchange rows with it, found gather"});
  const CommandResult differ =
      run_cermet("launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then O=; else O=--overlap-experts; fi; exec " CERMET_BINARY_DIR "/bin/cermet " + shared(file) +
                 " --data-parallel 2 --expert-parallel 2 $O'");
  EXPECT_NE(differ.code, 0);
  EXPECT_NE(differ.err.find("model: expected that of rank 0"), std::string::npos) << differ.err;
}

TEST(DataParallel, EnginesWithDifferentModelsAreRefusedAtTheStart) {
  const ScratchFolder folder;
  const std::string file = folder.file("ids.jsonl", "{\"ids\": [5, 6]}\n{\"ids\": [7]}\n").string();
  const CommandResult result = run_cermet("launch -n 2 -- sh -c 'if [ $RANK = 0 ]; then M=" + tiny + "; else M=" + mixture +
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
  const std::string one = "run models/demo --device cuda --json -p 'The PostgreSQL server' -n 12", two = one + " --tensor-parallel 2";
  const nlohmann::json wanted = run_cermet(one).json()["ids"];
  EXPECT_EQ(run_cermet(two).json()["ids"], wanted);
  EXPECT_EQ(run_cermet(two + " --super-kernel decode --super-kernel-options width=16").json()["ids"], wanted) << "collectives within one launch";
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
    for (const std::string ranks : {"--data-parallel 2 --expert-parallel 2", "--data-parallel 4 --expert-parallel 2", "--data-parallel 4 --expert-parallel 4"})
      EXPECT_EQ(ids_of(run + " " + ranks), one) << model << " " << ranks;
    EXPECT_EQ(ids_of("launch -n 2 -- " + run + " --data-parallel 2 --expert-parallel 2"), one) << model;
  }
}

/// Where weights are quantized, sums in another order may change a code, and what follows: most tokens are those of one engine.
TEST(SharedExperts, RanksOnGpusWithQuantizedWeightsChooseMostTokensOfOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const ScratchFolder folder;
  const std::string file = ids_file(folder, 5);
  for (const std::string weights : {"i8", "f8_e4m3"}) {
    const std::string run = shared(file, "tests/model/data/reference/mixtral-bf16") + " --device cuda --weights " + weights;
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
  EXPECT_EQ(ids_of(run + " --data-parallel 2 --expert-parallel 2 --super-kernel decode --super-kernel-options width=16"), ids_of(run));
}

TEST(ParallelRun, MpiProcessesComputeWhatOneDoes) {
  if (mpirun(2).empty()) GTEST_SKIP() << "the build has found no MPI";
  EXPECT_EQ(nlohmann::json::parse(output_of(mpirun(2) + ids + " --expert-parallel 2"))["ids"], run_cermet(ids).json()["ids"]);
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
       {"--data-parallel 2 --tensor-parallel 2", "--data-parallel 2 --tensor-parallel 2 --expert-parallel 2", "--data-parallel 4 --expert-parallel 2",
        "--data-parallel 4 --expert-parallel 4 --overlap-experts", "--data-parallel 4 --expert-parallel 2 --expert-exchange gather"}) {
    EXPECT_EQ(run_cermet(run + " " + both).out, one) << both;
    EXPECT_EQ(run_cermet("launch -n 4 -- " + run + " " + both).out, one) << both;
    if (!mpirun(4).empty()) {
      EXPECT_EQ(output_of(mpirun(4) + run + " " + both), one) << both;
    }
  }
}

TEST(LongParallelRun, SharedExpertsOfEveryKindOverEveryNumberOfRanks) {
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

/// Kills a rank while a model loads or computes; the others must end within 5 seconds, and one must say which is gone.
/// `longest`: how long after all ranks have joined it is killed, at most.
void kill_one(const std::string& start, int ranks, const std::string& run, unsigned seed, std::chrono::microseconds longest = std::chrono::milliseconds(800)) {
  std::mt19937 random(seed);
  Background command("env --chdir=" CERMET_SOURCE_DIR " " + start + run);
  const std::vector<pid_t> processes = joined_ranks(command, ranks);
  ASSERT_FALSE(processes.empty()) << command.err();
  std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(longest.count())));
  const pid_t victim = processes[random() % processes.size()];
  const auto killed = std::chrono::steady_clock::now();
  kill(victim, SIGKILL);
  EXPECT_GT(command.wait(std::chrono::seconds(20)), 0) << run << " seed " << seed;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - killed).count();
  EXPECT_LT(seconds, 5) << run << " seed " << seed << "\n" << command.err();
  EXPECT_NE(command.err().find("is gone: process " + std::to_string(victim) + " has ended"), std::string::npos) << run << " seed " << seed << "\n"
                                                                                                                << command.err();
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
    kill_one(launch(4), 4, many + " --data-parallel 4 --expert-parallel 2", seed + 500);
    kill_one(launch(2), 2, many + " --data-parallel 2 --expert-parallel 2 --overlap-experts", seed + 600);
    kill_one(launch(2), 2, many + " --data-parallel 2 --expert-parallel 2 --expert-exchange gather", seed + 700);
    if (!mpirun(2).empty()) kill_one(mpirun(2), 2, endless + "--tensor-parallel 2", seed + 400);
  }
}

/// Twenty times, while ranks that share the GPU where there is one alone read, compile, capture or replay.
TEST(LongParallelRun, ARankOnAGpuThatIsKilledEndsTheOthers) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  for (unsigned seed = 0; seed < 10; ++seed)
    for (const int ranks : {2, 4})
      kill_one(fmt::format(CERMET_BINARY_DIR "/bin/cermet launch -n {} -- ", ranks), ranks,
               fmt::format("run models/demo --device cuda -p hello -n 2000 --ignore-eos --tensor-parallel {}", ranks),
               1000 + seed * 10 + static_cast<unsigned>(ranks), std::chrono::milliseconds(2500));
}

}  // namespace
}  // namespace cermet::test
