#include "base/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <ctime>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

#include "base/pinned_threads.hpp"

namespace cermet {
namespace {

TEST(ThreadPool, CountsTheCaller) {
  EXPECT_EQ(ThreadPool(1).size(), 1);
  EXPECT_EQ(ThreadPool(4).size(), 4);
  EXPECT_GE(ThreadPool(0).size(), 1);
}

TEST(ThreadPool, RunCallsEveryThreadOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads, threads);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
    pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPool, OneThreadRunsOnTheCallers) {
  ThreadPool pool(1);
  std::thread::id found;
  pool.run([&](int) { found = std::this_thread::get_id(); });
  EXPECT_EQ(found, std::this_thread::get_id());
}

TEST(ThreadPool, ParallelForCoversTheRangeOnceInGrains) {
  ThreadPool pool(3, 3);
  for (const std::int64_t count : {0, 1, 7, 1000})
    for (const std::int64_t grain : {1, 8, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LT(begin, end);
        EXPECT_EQ(begin % grain, 0);
        EXPECT_TRUE(end % grain == 0 || end == count);
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1) << count << ", grain " << grain;
    }
}

TEST(ThreadPool, DynamicForVisitsEveryItemOnce) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads, threads);
    for (const std::int64_t count : {0, 1, 2, 500}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      pool.dynamic_for(count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1) << count;
    }
  }
}

TEST(ThreadPool, RethrowsAnExceptionAndGoesOn) {
  for (const int threads : {1, 4})
    for (int thrower = 0; thrower < threads; ++thrower) {
      ThreadPool pool(threads, threads);
      const auto body = [&](int thread) {
        if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thread));
      };
      try {
        pool.run(body);
        ADD_FAILURE() << "no exception from thread " << thrower;
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "thread " + std::to_string(thrower));
      }
      std::atomic<int> calls{0};
      pool.run([&](int) { ++calls; });
      EXPECT_EQ(calls, threads);
    }
}

TEST(ThreadPool, RethrowsOneOfManyExceptions) {
  ThreadPool pool(4, 4);
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
  EXPECT_THROW(pool.parallel_for(100, 1, [](std::int64_t, std::int64_t) { throw std::runtime_error("all"); }),
               std::runtime_error);
  EXPECT_THROW(pool.dynamic_for(100,
                                [](std::int64_t i) {
                                  if (i == 50) throw std::runtime_error("one");
                                }),
               std::runtime_error);
}

TEST(ThreadPool, ManyTinyRegions) {
  ThreadPool pool(3, 3);
  std::int64_t sums[3] = {};  // each thread has its own; the region's end makes them visible
  for (int region = 0; region < 400; ++region) pool.run([&](int thread) { sums[thread] += region; });
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, 400 * 399 / 2);
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(3, 3);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than workers spin
    std::atomic<int> calls{0};
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 3);
  }
}

/// Workers that wait for a core, as on a machine with other work, are not waited for.
TEST(ThreadPool, TheCallerDoesWhatWorkersHaveNotBegun) {
  std::thread([] {  // all threads on the core that this one is on
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &core);
    ASSERT_EQ(sched_setaffinity(0, sizeof core, &core), 0);
    ThreadPool pool(40, 40);
    std::atomic<int> calls[40] = {};
    int by_caller = 0;
    for (int region = 0; region < 50; ++region)
      pool.run([&, caller = std::this_thread::get_id()](int thread) {
        ++calls[thread];
        if (std::this_thread::get_id() == caller) ++by_caller;
      });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 50);
    EXPECT_GT(by_caller, 50) << "more than its own";
  })
      .join();
}

/// More threads than cores: those that there are do all parts, so that none spins on a core that another needs.
TEST(ThreadPool, HasNoMoreWorkersThanCores) {
  for (const int cores : {1, 2, 3}) {
    ThreadPool pool(64, cores);
    EXPECT_EQ(pool.size(), 64);
    EXPECT_EQ(pool.at_once(), cores);
    EXPECT_EQ(ThreadPool(pool, 8).size(), 8);
    EXPECT_EQ(ThreadPool(pool, 8).at_once(), cores);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::vector<int> calls(64);
    for (int region = 0; region < 50; ++region)
      pool.run([&](int thread) {
        ++calls[static_cast<std::size_t>(thread)];
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
    for (const int count : calls) EXPECT_EQ(count, 50);
    EXPECT_LE(seen.size(), static_cast<std::size_t>(cores));
    EXPECT_THROW(pool.run([](int thread) {
      if (thread == 63) throw std::runtime_error("last");
    }),
                 std::runtime_error);
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum += i;
    });
    pool.dynamic_for(1000, [&](std::int64_t i) { sum += i; });
    EXPECT_EQ(sum, 999000);
  }
  EXPECT_EQ(ThreadPool(2, 8).at_once(), 2);
}

/// 64 threads on one core took a thousand times as long as one, which this would need minutes for.
TEST(ThreadPool, ManyThreadsOnOneCoreTakeNotMuchLongerThanOne) {
  std::thread([] {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &core);
    ASSERT_EQ(sched_setaffinity(0, sizeof core, &core), 0);
    const auto processor_seconds = [](int threads) {
      ThreadPool pool(threads);
      std::vector<double> sums(static_cast<std::size_t>(threads));
      timespec begin{}, end{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
      for (int region = 0; region < 2000; ++region)
        pool.run([&](int thread) {
          double sum = 0;
          for (int i = 0; i < 6400 / threads; ++i) sum += static_cast<double>(i ^ region) * 1e-3;
          sums[static_cast<std::size_t>(thread)] += sum;
        });
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
      return static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
    };
    double one = 1e9, many = 1e9;
    for (int round = 0; round < 3; ++round)
      one = std::min(one, processor_seconds(1)), many = std::min(many, processor_seconds(64));
    EXPECT_LT(many, 2 * one);
  }).join();
}

TEST(ThreadPool, SomeThreadsOfAPoolAreAPool) {
  for (const int threads : {1, 4, 40}) {  // more than 33 have workers that every region calls
    ThreadPool whole(threads, threads);
    for (const int wanted : {1, 3, 50}) {
      ThreadPool few(whole, wanted);
      const int expected = std::min(wanted, threads);
      EXPECT_EQ(few.size(), expected);
      EXPECT_EQ(ThreadPool(few, 2).size(), std::min(2, expected));
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads)), all(static_cast<std::size_t>(threads));
      for (int region = 0; region < 20; ++region) {
        few.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
        whole.run([&](int thread) { ++all[static_cast<std::size_t>(thread)]; });
      }
      for (int thread = 0; thread < threads; ++thread) {
        EXPECT_EQ(calls[static_cast<std::size_t>(thread)], thread < expected ? 20 : 0);
        EXPECT_EQ(all[static_cast<std::size_t>(thread)], 20);
      }
      std::atomic<std::int64_t> sum{0};
      few.parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) sum += i;
      });
      few.dynamic_for(1000, [&](std::int64_t i) { sum += i; });
      EXPECT_EQ(sum, 999000);
      EXPECT_THROW(few.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
    }
  }
}

TEST(ThreadPool, PinnedThreadsStayOnCoresOfTheirOwnAndAreLetGo) {
  ThreadPool pool(0);
  const auto cores_of_threads = [&] {
    std::vector<int> counts(static_cast<std::size_t>(pool.size()));
    std::atomic<int> begun{0};
    pool.run([&](int thread) {
      ++begun;
      while (thread == 0 && begun < pool.size()) std::this_thread::yield();  // so that the caller takes no other call
      cpu_set_t set;
      if (sched_getaffinity(0, sizeof set, &set) == 0) counts[static_cast<std::size_t>(thread)] = CPU_COUNT(&set);
    });
    return counts;
  };
  const std::vector<int> before = cores_of_threads();
  {
    const PinnedThreads pinned(pool);
    for (const int count : cores_of_threads()) EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(cores_of_threads(), before);
}

TEST(ThreadPool, CallersFromSeveralThreadsTakeTurns) {
  ThreadPool pool(3, 3);
  std::atomic<int> inside{0}, total{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int region = 0; region < 25; ++region)
        pool.run([&](int thread) {
          if (thread == 0 && ++inside > 1) overlapped = true;
          ++total;
          if (thread == 0) --inside;
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 25 * 3);
  EXPECT_FALSE(overlapped);
}

TEST(ThreadPool, SumsTheSameInEveryRun) {
  ThreadPool pool(3, 3);
  std::vector<float> values(10001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const auto sum = [&] {
    float parts[3] = {};
    pool.parallel_for(static_cast<std::int64_t>(values.size()), 16, [&](std::int64_t begin, std::int64_t end) {
      // A piece begins up to a grain before its third: the nearest one is its own.
      parts[(begin * 3 + 5000) / 10001] = std::accumulate(values.begin() + begin, values.begin() + end, 0.0f);
    });
    return parts[0] + parts[1] + parts[2];
  };
  const float first = sum();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sum(), first);
}

}  // namespace
}  // namespace cermet
