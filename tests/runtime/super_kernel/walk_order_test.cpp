// Walks of random plans: in any order of blocks all of them end, and launches keep their dependencies.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "runtime/super_kernel/deal.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {
namespace {

/// Chains, diamonds, branches, empty tensors and launches, memory that is used again.
struct RandomPlan {
  std::array<std::byte, 1024> memory{};  ///< only its addresses matter
  Plan plan;
  std::mt19937_64 random;

  explicit RandomPlan(std::uint64_t seed) : random(seed) {
    plan.want_ranges(true);
    for (int l = between(1, 14); l > 0; --l) {
      Launch launch;
      launch.items = static_cast<std::uint32_t>(between(0, 10) == 0 ? 0 : between(1, 24));
      plan.add_program(launch, {});
      std::vector<ByteRange> reads;
      for (int r = between(0, 3); r > 0; --r) reads.push_back(piece());
      const ByteRange written = piece();
      plan.declare(reads, {&written, 1});
    }
  }
  RandomPlan(const RandomPlan&) = delete;
  RandomPlan& operator=(const RandomPlan&) = delete;

  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); }
  /// Few places, so that launches meet.
  ByteRange piece() { return {memory.data() + 96 * between(0, 7), between(0, 20) == 0 ? 0 : between(1, 128)}; }
  std::vector<std::uint32_t> deal(const Needs& needs, std::uint32_t blocks) {
    std::vector<DealtLaunch> dealt;
    for (const Launch& launch : plan.launches()) dealt.push_back({launch.items, between(1, 9) * 1e-6});
    return first_blocks(dealt, needs, blocks);
  }
};

void expect_random_walks_hold(std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t seed = first; seed < end; ++seed) {
    RandomPlan random(seed);
    const Needs needs = region_needs(random.plan, 0, random.plan.launches().size(), seed % 8 == 0);
    for (std::uint64_t order = 0; order < 4; ++order) {
      const auto blocks = static_cast<std::uint32_t>(random.between(1, 12));
      ASSERT_EQ(walk_in_any_order(random.plan, blocks, order, needs, 0, random.deal(needs, blocks)), "")
          << "seed " << seed << ", " << blocks << " blocks, order " << order;
    }
  }
}

TEST(WalkOrder, RandomPlansKeepTheirDependencies) { expect_random_walks_hold(0, 300); }
TEST(LongWalkOrder, TenThousandRandomPlansKeepTheirDependencies) { expect_random_walks_hold(1000, 11000); }

/// What those tests rely on: with a wait less, some order shows it.
TEST(WalkOrder, AMissingWaitIsFound) {
  int found = 0, tried = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomPlan random(seed);
    Needs needs = region_needs(random.plan, 0, random.plan.launches().size());
    const auto waiting = std::ranges::find_if(needs, [](const auto& list) { return !list.empty(); });
    if (waiting == needs.end()) continue;
    const std::size_t after = static_cast<std::size_t>(waiting - needs.begin());
    if (random.plan.launches()[after].items == 0 || random.plan.launches()[waiting->back()].items == 0) continue;
    waiting->pop_back();
    ++tried;
    const std::vector<std::uint32_t> first_block = random.deal(needs, 24);
    for (std::uint64_t order = 0, shown = 0; order < 20 && shown == 0; ++order)
      found +=
          static_cast<int>(shown = walk_in_any_order(random.plan, 24, order, needs, 0, first_block).empty() ? 0 : 1);
  }
  EXPECT_GT(tried, 50);
  EXPECT_GT(found, tried / 2) << "of " << tried;
}

/// A launch that waits for one after it.
TEST(WalkOrder, ADeadlockIsFound) {
  RandomPlan random(1);
  Launch launch;
  launch.items = 4;
  random.plan.clear();
  for (int l = 0; l < 2; ++l) random.plan.add_program(launch, {});
  EXPECT_EQ(walk_in_any_order(random.plan, 3, 0, Needs{{1}, {}}), "deadlock");
}

}  // namespace
}  // namespace cermet
