// Models over several ranks from the command line: prompts, how ranks are started, and how one of them is killed.
#pragma once

#include <random>
#include <string>

#include "tests/cli/command.hpp"
#include "tests/comm/background.hpp"

namespace cermet::test {

inline const std::string mixture = "tests/model/data/reference/qwen3moe-bf16";

inline std::string prompts_file(const ScratchFolder& folder, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{{\"prompt\": \"The index number {}\", \"max_new_tokens\": {}}}\n", i, 4 + 5 * i % 17);
  return folder.file("prompts.jsonl", text).string();
}

inline std::string ids_file(const ScratchFolder& folder, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{{\"ids\": [{}, 7, {}], \"max_new_tokens\": {}}}\n", 5 + i, 40 - i, 3 + 5 * i % 11);
  return folder.file("ids.jsonl", text).string();
}

/// Engines of a mixture with prompts of their own.
inline std::string shared(const std::string& file, const std::string& model = mixture) {
  return "run " + model + " --prompts " + file + " --batch 2 --dtype f32 --json";
}

/// A command of Open MPI; "" where the build has found none.
inline std::string mpirun(int ranks) {
#ifdef CERMET_HAS_MPI
  return fmt::format("mpirun --allow-run-as-root --oversubscribe -n {} " CERMET_BINARY_DIR "/bin/cermet ", ranks);
#else
  static_cast<void>(ranks);
  return "";
#endif
}

/// Standard output of a command line that mpirun starts.
inline std::string output_of(const std::string& command) {
  Background run("env --chdir=" CERMET_SOURCE_DIR " " + command);
  EXPECT_EQ(run.wait(std::chrono::seconds(120)), 0) << command << "\n" << run.err();
  return run.out();
}

/// Kills a rank while a model loads or computes; the others must end within 5 seconds, and one must say which is gone.
/// `longest`: how long after all ranks have joined it is killed, at most.
inline void kill_one(const std::string& start, int ranks, const std::string& run, unsigned seed,
                     std::chrono::microseconds longest = std::chrono::milliseconds(800)) {
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
  EXPECT_NE(command.err().find("is gone: process " + std::to_string(victim) + " has ended"), std::string::npos)
      << run << " seed " << seed << "\n"
      << command.err();
}

}  // namespace cermet::test
