#include "kernel/cpu/shared_items.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/thread_pool.hpp"

namespace cermet::cpu {
namespace {

TEST(SharedItems, AThreadTakesItsPartInOrderAndThenTheEndsOfOthers) {
  SharedItems shared(10, 2);
  std::vector<std::int64_t> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(shared.take(0));
  for (int i = 0; i < 7; ++i) taken.push_back(shared.take(1));
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 1, 2, 5, 6, 7, 8, 9, 4, 3}));
  EXPECT_EQ(shared.take(0), -1);
  EXPECT_EQ(shared.take(1), -1);
}

TEST(SharedItems, EveryItemIsTakenOnce) {
  for (const int threads : {1, 3, 40})
    for (const std::int64_t count : {0, 1, 39, 1000}) {
      ThreadPool pool(threads);
      SharedItems shared(count, threads);
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      pool.run([&](int thread) {
        for (std::int64_t i = shared.take(thread); i >= 0; i = shared.take(thread))
          ++times[static_cast<std::size_t>(i)];
      });
      for (const std::atomic<int>& item : times) EXPECT_EQ(item, 1);
    }
}

}  // namespace
}  // namespace cermet::cpu
