// Tuning databases that many processes write, and that processes leave in the middle of writing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/logger.hpp"
#include "select/tuning_database.hpp"
#include "tests/model/scratch.hpp"
#include "tests/select/tuning_entries.hpp"

namespace cermet {
namespace {

using test::made_entry;
using test::number_of;
using test::ScratchFolder;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int keys_of_a_process = 40;

std::string region_of(int process, std::int64_t number) {
  return fmt::format("region {} of process {}", number % keys_of_a_process, process);
}

/// A process that runs the body and ends with what it returns; a message where it throws.
template <class Body>
pid_t start(Body&& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 1;
  try {
    code = body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "process {}: {}\n", getpid(), error.what());
  }
  _exit(code);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Puts entries until the time is over and reads all again and again; 0 where it found every own entry as it was put,
/// and no other was a mixture of two.
int write_and_read(const fs::path& file, int process, double seconds, int pipe_end) {
  TuningDatabase database = TuningDatabase::open(file);
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::int64_t number = 0;
  for (; Clock::now() < end; ++number) {
    database.put(made_entry(region_of(process, number), number));
    database.put(made_entry("everybody's region", number));
    if (number % 16 != 15) continue;
    database.reload();
    for (const TuningEntry& entry : database.all())
      if (number_of(entry) < 0) return 2;
    for (std::int64_t own = std::max<std::int64_t>(0, number - keys_of_a_process + 1); own <= number; ++own) {
      const auto found = database.find(made_entry(region_of(process, own), 0).key);
      if (!found || number_of(*found) != own) return 3;
    }
  }
  return write(pipe_end, &number, sizeof number) == sizeof number ? 0 : 4;
}

void expect_nothing_lost(int processes, double seconds) {
  const ScratchFolder scratch;
  const fs::path file = scratch / "tuning/tuning.db";
  struct Child {
    pid_t id;
    int end;
  };
  std::vector<Child> children;
  for (int p = 0; p < processes; ++p) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    children.push_back({start([&] { return write_and_read(file, p, seconds, ends[1]); }), ends[0]});
    close(ends[1]);
  }
  std::vector<std::int64_t> counts;
  for (const Child& child : children) {
    std::int64_t count = 0;
    EXPECT_EQ(read(child.end, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    close(child.end);
    EXPECT_EQ(wait_for(child.id), 0);
    counts.push_back(count);
  }
  const TuningDatabase database = TuningDatabase::open(file);
  std::int64_t total = 0;
  for (int p = 0; p < processes; ++p) {
    const std::int64_t count = counts[static_cast<std::size_t>(p)];
    EXPECT_GT(count, 0) << "process " << p << " came to nothing";
    total += count;
    for (std::int64_t number = std::max<std::int64_t>(0, count - keys_of_a_process); number < count; ++number) {
      const auto found = database.find(made_entry(region_of(p, number), 0).key);
      ASSERT_TRUE(found.has_value()) << "process " << p << ", entry " << number;
      EXPECT_EQ(number_of(*found), number);
    }
  }
  EXPECT_GE(number_of(*database.find(made_entry("everybody's region", 0).key)), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1)
      << "nothing was moved aside, and nothing is left";
  testing::Test::RecordProperty("puts", std::to_string(2 * total));
}

TEST(TuningProcesses, FourWriteAndReadAtATime) { expect_nothing_lost(4, 2); }
TEST(LongTuningProcesses, ThirtyTwoWriteAndReadAtATime) { expect_nothing_lost(32, 60); }

TEST(TuningProcesses, ManyMeetADamagedFile) {
  const ScratchFolder scratch;
  const fs::path file = scratch / "tuning.db";
  for (int round = 0; round < 5; ++round) {
    scratch.file("tuning.db", std::string(4096, 'x'));
    std::vector<pid_t> children;
    for (int p = 0; p < 6; ++p)
      children.push_back(start([&] {
        logger().set_level(spdlog::level::err);
        TuningDatabase::open(file).put(made_entry(region_of(p, 0), p));
        return 0;
      }));
    for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
    const TuningDatabase database = TuningDatabase::open(file);
    for (int p = 0; p < 6; ++p) {
      const auto found = database.find(made_entry(region_of(p, 0), 0).key);
      ASSERT_TRUE(found.has_value()) << "round " << round << ", process " << p;
      EXPECT_EQ(number_of(*found), p);
    }
    EXPECT_EQ(scratch.entries(), round + 2) << "one file is moved aside, once";
  }
}

/// Kills a process that puts entries, again and again; what it was told to be stored must be there.
void expect_kills_are_harmless(int rounds, int seed) {
  const ScratchFolder scratch;
  const fs::path file = scratch / "tuning/tuning.db";
  std::mt19937 random(static_cast<unsigned>(seed));
  std::int64_t number = 0, killed_while_writing = 0;
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::int64_t first = number;
    const pid_t child = start([&] {
      TuningDatabase database = TuningDatabase::open(file);
      for (std::int64_t n = first;; ++n) {
        database.put(made_entry(region_of(0, n), n));
        if (write(ends[1], &n, sizeof n) != sizeof n) return 4;
      }
    });
    close(ends[1]);
    const auto stored = [&] {
      std::int64_t n = 0;
      if (read(ends[0], &n, sizeof n) != sizeof n) return false;
      number = n + 1;
      return true;
    };
    for (int wanted = std::uniform_int_distribution<int>(0, 20)(random); wanted > 0 && stored();)
      --wanted;  // 0: while it makes or opens the file
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int>(0, 5000)(random)));
    kill(child, SIGKILL);
    EXPECT_EQ(wait_for(child), 128 + SIGKILL);
    while (stored()) {
    }
    close(ends[0]);
    const TuningDatabase database = TuningDatabase::open(file);
    for (const TuningEntry& entry : database.all()) ASSERT_GE(number_of(entry), 0) << "half an entry";
    for (std::int64_t n = std::max<std::int64_t>(0, number - keys_of_a_process + 1); n < number; ++n) {
      const auto found = database.find(made_entry(region_of(0, n), 0).key);
      ASSERT_TRUE(found.has_value()) << "round " << round << ", entry " << n;
      EXPECT_TRUE(number_of(*found) == n || number_of(*found) == n + keys_of_a_process)
          << "round " << round << ", entry " << n;
    }
    killed_while_writing += number > first;
    if (!fs::exists(file.parent_path())) continue;
    for (const auto& inside : fs::directory_iterator(file.parent_path()))
      ASSERT_EQ(inside.path().string().find("damaged"), std::string::npos) << inside.path();
  }
  EXPECT_GT(killed_while_writing, rounds / 2);
}

TEST(TuningProcesses, KilledWhileTheyWrite) { expect_kills_are_harmless(5, 1); }
TEST(LongTuningProcesses, KilledWhileTheyWriteAHundredTimes) { expect_kills_are_harmless(100, 2); }

}  // namespace
}  // namespace cermet
