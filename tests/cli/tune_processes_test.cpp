// Many `cermet tune` at a time with one database, and some that are killed.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct SharedChoices {
  ScratchFolder folder;
  std::string environment() const { return "CERMET_TUNING=" + (folder / "choices.db").string(); }

  /// What a command prints; an exception where it fails or has anything to say.
  nlohmann::json run(const std::string& arguments) const {
    const CommandResult result = run_cermet(arguments + " --json", "", environment());
    if (result.code != 0 || !result.err.empty())
      throw std::runtime_error(arguments + ": " + std::to_string(result.code) + ", " + result.err);
    return result.json();
  }
  std::set<std::string> regions() const {
    std::set<std::string> found;
    const nlohmann::json list = run("tune list");
    for (const auto& entry : list["entries"]) found.insert(entry["region"].get<std::string>());
    return found;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
    return names;
  }
};

/// A call of which no two processes have the same.
std::string norm_of(int process, int number) {
  return std::to_string(8 + number) + "," + std::to_string(64 + 8 * process);
}

/// Tunes calls of its own and one of everybody's, asks what is chosen for them, and lists all, until the time is over.
/// Returns the regions that it tuned.
std::set<std::string> tune_and_read(const SharedChoices& shared, int process, Clock::time_point end) {
  std::set<std::string> own;
  for (int number = 0; Clock::now() < end; ++number) {
    const std::string shape = "'f32[" + norm_of(process, number) + "]'";
    const auto tuned =
        shared.run("tune op softmax --shapes " + shape + " 'f32[48,96]' --threads 2 --seconds 0.001 --budget 60");
    if (tuned["tuned"] != 2) throw std::runtime_error("expected 2 calls tuned, found " + tuned.dump());
    for (const auto& result : tuned["results"]) own.insert(result["region"].get<std::string>());
    if (shared.run("explain op softmax --threads 2 --shape " + shape)["kernel"] != "rowwise.softmax")
      throw std::runtime_error("another kernel");
    const std::set<std::string> all = shared.regions();
    for (const std::string& region : own)
      if (!all.contains(region)) throw std::runtime_error("lost " + region);
  }
  return own;
}

TEST(LongTuneProcesses, ThirtyTwoTuneAndReadAtATime) {
  const SharedChoices shared;
  constexpr int processes = 32;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
  std::vector<std::set<std::string>> tuned(processes);
  std::vector<std::string> faults(processes);
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p)
    threads.emplace_back([&, p] {
      try {
        tuned[static_cast<std::size_t>(p)] = tune_and_read(shared, p, end);
      } catch (const std::exception& fault) {
        faults[static_cast<std::size_t>(p)] = fault.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (int p = 0; p < processes; ++p) {
    EXPECT_EQ(faults[static_cast<std::size_t>(p)], "") << "process " << p;
    EXPECT_GE(tuned[static_cast<std::size_t>(p)].size(), 2u) << "process " << p;
    all.merge(tuned[static_cast<std::size_t>(p)]);
  }
  EXPECT_EQ(shared.regions(), all);
  EXPECT_EQ(shared.files(), std::vector<std::string>{"choices.db"}) << "nothing was moved aside, and nothing is left";
  testing::Test::RecordProperty("regions", std::to_string(all.size()));
}

/// A shell that becomes `cermet tune` of some calls that no other round has.
pid_t start_tuning(const SharedChoices& shared, int round) {
  std::string shapes;
  for (int number = 0; number < 4; ++number) shapes += " 'f32[" + norm_of(round, number) + "]'";
  const pid_t child = fork();
  if (child != 0) return child;
  const std::string command = "cd " CERMET_SOURCE_DIR "; exec env " + shared.environment() +
                              " " CERMET_BINARY_DIR "/bin/cermet tune op softmax --shapes" + shapes +
                              " --threads 2 --seconds 0.001 --budget 600 >/dev/null 2>&1";
  execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

TEST(LongTuneProcesses, KilledWhileTheyTuneAHundredTimes) {
  const SharedChoices shared;
  const Clock::time_point begin = Clock::now();
  waitpid(start_tuning(shared, 100), nullptr, 0);
  const double whole = std::chrono::duration<double>(Clock::now() - begin).count();
  std::set<std::string> known = shared.regions();
  ASSERT_EQ(known.size(), 4u);
  std::mt19937 random(3);
  int stored = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = start_tuning(shared, round);
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::uniform_real_distribution<double>(0, whole)(random)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::set<std::string> found = shared.regions();  // opens, and has nothing to say
    for (const std::string& region : known)
      ASSERT_TRUE(found.contains(region)) << "round " << round << " lost " << region;
    stored += found.size() > known.size() ? 1 : 0;
    known = found;
    const auto chosen = shared.run("explain op softmax --threads 2 --shape 'f32[" + norm_of(round, 0) + "]'");
    ASSERT_EQ(chosen["kernel"], "rowwise.softmax") << chosen;
    for (const std::string& name : shared.files()) ASSERT_EQ(name.find("damaged"), std::string::npos) << name;
  }
  EXPECT_GT(stored, 5) << "some are killed after they stored something";
}

}  // namespace
}  // namespace cermet::test
