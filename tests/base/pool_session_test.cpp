#include "base/pool_session.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <numeric>
#include <stdexcept>
#include <string>

namespace cermet {
namespace {

TEST(PoolSession, LoopsRunAsTheyDoOutside) {
  for (const int threads : {1, 2, 5, 40}) {
    ThreadPool pool(threads, threads);
    PoolSession session(threads);
    std::vector<std::int64_t> sums;
    session.hold(pool, [&] {
      for (std::int64_t count = 0; count < 300; count += 7) {
        std::atomic<std::int64_t> sum{0};
        pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) sum += i;
        });
        pool.dynamic_for(count, [&](std::int64_t i) { sum += i; });
        sums.push_back(sum);
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], std::int64_t(7 * i) * (std::int64_t(7 * i) - 1));
    EXPECT_EQ(threads > 1, session.loops() > 0);
  }
}

TEST(PoolSession, EveryThreadIsCalledOnceAndPartsOfThePoolToo) {
  ThreadPool pool(4, 4);
  ThreadPool few(pool, 2);
  PoolSession session(4);
  std::vector<std::atomic<int>> calls(4);
  session.hold(pool, [&] {
    for (int loop = 0; loop < 1000; ++loop) pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    few.run([&](int thread) { calls[static_cast<std::size_t>(thread)] += 10; });
  });
  EXPECT_EQ(calls[0], 1010);
  EXPECT_EQ(calls[1], 1010);
  EXPECT_EQ(calls[2], 1000);
  EXPECT_EQ(calls[3], 1000);
}

TEST(PoolSession, IsHeldOnAPartOfAPool) {
  ThreadPool pool(4, 4);
  ThreadPool few(pool, 2);
  PoolSession session(4);
  std::atomic<int> calls{0};
  session.hold(few, [&] {
    few.run([&](int) { ++calls; });
    pool.run([&](int) { ++calls; });  // threads that do not follow are stood in for
  });
  EXPECT_EQ(calls, 6);
}

TEST(PoolSession, OfMoreThreadsThanCoresIsHeldByThoseThatHaveOne) {
  for (const int cores : {1, 2}) {
    ThreadPool pool(40, cores);
    PoolSession session(40);
    std::vector<std::atomic<int>> calls(40);
    session.hold(pool, [&] {
      for (int loop = 0; loop < 200; ++loop) pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
      ThreadPool(pool, 3).run([&](int thread) { calls[static_cast<std::size_t>(thread)] += 10; });
    });
    for (std::size_t thread = 0; thread < 40; ++thread) EXPECT_EQ(calls[thread], thread < 3 ? 210 : 200);
    EXPECT_EQ(session.loops() > 0, cores > 1);
  }
}

TEST(PoolSession, IsHeldAgainAndInsideItself) {
  ThreadPool pool(3, 3);
  PoolSession session(3);
  int calls = 0;
  for (int again = 0; again < 200; ++again)
    session.hold(pool,
                 [&] { session.hold(pool, [&] { pool.run([&](int thread) { calls += thread == 0 ? 1 : 0; }); }); });
  EXPECT_EQ(calls, 200);
  pool.run([&](int thread) { calls += thread == 0 ? 1 : 0; });
  EXPECT_EQ(calls, 201) << "the pool is itself again";
}

TEST(PoolSession, ErrorsComeOutAndEndIt) {
  ThreadPool pool(3, 3);
  PoolSession session(3);
  for (int bad = 0; bad < 3; ++bad) {
    int reached = 0;
    try {
      session.hold(pool, [&] {
        pool.run([&](int thread) {
          if (thread == bad) throw std::runtime_error("part " + std::to_string(thread));
        });
        ++reached;
      });
      ADD_FAILURE() << "expected an error";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "part " + std::to_string(bad));
    }
    EXPECT_EQ(reached, 0);
    EXPECT_EQ(PoolSession::of(pool), nullptr);
  }
  EXPECT_THROW(session.hold(pool, [] { throw std::logic_error("between loops"); }), std::logic_error);
  std::atomic<int> calls{0};
  session.hold(pool, [&] { pool.run([&](int) { ++calls; }); });
  EXPECT_EQ(calls, 3);
}

TEST(PoolSession, OtherThreadsTakeTurnsWithIt) {
  ThreadPool pool(2, 2);
  PoolSession session(2);
  std::atomic<bool> inside{false};
  std::atomic<int> overlaps{0}, calls{0};
  std::thread other([&] {
    for (int i = 0; i < 200; ++i)
      pool.run([&](int) {
        overlaps += inside ? 1 : 0;
        ++calls;
      });
  });
  for (int i = 0; i < 200; ++i)
    session.hold(pool, [&] {
      inside = true;
      for (int loop = 0; loop < 5; ++loop) pool.run([&](int) { ++calls; });
      inside = false;
    });
  other.join();
  EXPECT_EQ(calls, 200 * 2 + 200 * 10);
  EXPECT_EQ(overlaps, 0);
}

}  // namespace
}  // namespace cermet
