// Pools and sessions with more threads than cores, held up at random between any two accesses to what they share
// (base/pool_point.hpp), under ThreadSanitizer. What counts is that all ends, and that every part of a loop runs once
// and its stores are seen behind it.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <stdexcept>

#include "base/pool_session.hpp"

namespace cermet {
namespace {

/// One loop on all or some of the threads; now and then a part throws.
void run_loop(ThreadPool& pool, std::mt19937& draw, std::vector<int>& parts) {
  const int size = pool.size(), bad = draw() % 16 == 0 ? static_cast<int>(draw()) % size : -1;
  std::fill(parts.begin(), parts.end(), 0);
  bool threw = false;
  try {
    pool.run([&](int thread) {
      ++parts[static_cast<std::size_t>(thread)];  // no atomic: ThreadSanitizer sees who was not waited for
      if (thread == bad) throw std::runtime_error("part");
    });
  } catch (const std::runtime_error&) {
    threw = true;
  }
  EXPECT_EQ(threw, bad >= 0);
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), size);
  for (int thread = 0; thread < size; ++thread) EXPECT_EQ(parts[static_cast<std::size_t>(thread)], 1);
}

/// Sessions of a pool or of a part of it, with loops in them and between them; some end by an error.
void run_sessions(ThreadPool& pool, int sessions, unsigned seed) {
  std::mt19937 draw(seed);
  PoolSession session(pool.size());
  std::vector<int> parts(static_cast<std::size_t>(pool.size()));
  for (int i = 0; i < sessions; ++i) {
    ThreadPool few(pool, 1 + static_cast<int>(draw() % static_cast<unsigned>(pool.size())));
    const bool fails = draw() % 8 == 0;
    try {
      session.hold(draw() % 2 ? pool : few, [&] {
        for (auto loops = draw() % 6; loops > 0; --loops) run_loop(draw() % 3 ? pool : few, draw, parts);
        if (fails) throw std::logic_error("between loops");
      });
      EXPECT_FALSE(fails);
    } catch (const std::logic_error&) {
      EXPECT_TRUE(fails);
    }
    if (draw() % 2) run_loop(pool, draw, parts);
    EXPECT_EQ(PoolSession::of(pool), nullptr);
  }
}

TEST(PoolStress, EverySessionEnds) {
  for (const int threads : {2, 3, 5, 9, 33, 40}) {
    ThreadPool pool(threads, threads);
    run_sessions(pool, 10000 / (threads * threads), static_cast<unsigned>(threads));
  }
}

TEST(PoolStress, CallersTakeTurns) {
  ThreadPool pool(4, 4);
  std::vector<std::thread> callers;
  for (unsigned seed = 1; seed <= 4; ++seed) callers.emplace_back([&pool, seed] { run_sessions(pool, 500, seed); });
  for (std::thread& caller : callers) caller.join();
}

TEST(PoolStress, PoolsComeAndGo) {
  for (unsigned i = 0; i < 200; ++i) {
    ThreadPool pool(2 + static_cast<int>(i % 5), 8);
    run_sessions(pool, static_cast<int>(i % 4), i);
  }
}

}  // namespace
}  // namespace cermet
