// Launches of a walk dealt out to its blocks: chains begin at block 0, independent launches lie side by side, and
// blocks have as much to do as they can.
#include "runtime/super_kernel/deal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cermet {
namespace {

using Needs = std::vector<std::vector<std::uint32_t>>;
using Blocks = std::vector<std::uint32_t>;

constexpr double us = 1e-6;

/// When the last block has ended a walk whose launches begin at these blocks, each boundary of which takes a
/// microsecond.
double end_of_walk(std::span<const DealtLaunch> launches, const Needs& needs, const Blocks& first,
                   std::uint32_t blocks) {
  std::vector<double> free(blocks), ended(launches.size());
  for (std::size_t l = 0; l < launches.size(); ++l) {
    double ready = 0;
    for (const std::uint32_t need : needs[l]) ready = std::max(ready, ended[need]);
    for (std::uint32_t place = 0; place < std::min(launches[l].items, blocks); ++place) {
      const std::uint32_t items = (launches[l].items - place + blocks - 1) / blocks;
      double& time = free[(first[l] + place) % blocks];
      time = std::max(time, ready) + us + items * launches[l].item_seconds;
      ended[l] = std::max(ended[l], time);
    }
  }
  return *std::ranges::max_element(free);
}

TEST(Deal, LaunchesThatFollowEachOtherBeginAtBlockZero) {
  std::vector<DealtLaunch> launches{{132, 3 * us}, {1, 2 * us}, {64, 9 * us}, {140, us}, {8, 0}};
  EXPECT_EQ(first_blocks(launches, Needs{{}, {0}, {1}, {2}, {3}}, 132), (Blocks{0, 0, 0, 0, 0}));
}

TEST(Deal, BranchesLieSideBySide) {
  std::vector<DealtLaunch> launches;
  Needs needs;
  for (std::uint32_t branch = 0; branch < 4; ++branch)
    for (std::uint32_t at = 0; at < 3; ++at) {
      launches.push_back({16, 2 * us});
      needs.push_back(at == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{3 * branch + at - 1});
    }
  launches.push_back({132, us});
  needs.push_back({2, 5, 8, 11});
  const Blocks first = first_blocks(launches, needs, 132);
  EXPECT_EQ(first, (Blocks{0, 0, 0, 16, 16, 16, 32, 32, 32, 48, 48, 48, 0}));
  EXPECT_NEAR(end_of_walk(launches, needs, first, 132), (3 * 3 + 2) * us, 1e-9);
  EXPECT_NEAR(end_of_walk(launches, needs, Blocks(13), 132), (4 * 3 * 3 + 2) * us, 1e-9)
      << "all of them on the same blocks";
}

TEST(Deal, TheRestOfALaunchGoesToBlocksWithLess) {
  EXPECT_EQ(first_blocks(std::vector<DealtLaunch>{{6, us}, {6, us}}, Needs{{}, {}}, 8), (Blocks{0, 2}))
      << "around the end would end no sooner";
  EXPECT_EQ(first_blocks(std::vector<DealtLaunch>{{4, us}, {12, us}}, Needs{{}, {}}, 8), (Blocks{0, 4}))
      << "two items for blocks 4 to 7";
  EXPECT_EQ(first_blocks(std::vector<DealtLaunch>{{4, 9 * us}, {3, us}, {3, us}}, Needs{{}, {}, {}}, 8),
            (Blocks{0, 4, 5}))
      << "long and short ones";
  EXPECT_EQ(first_blocks(std::vector<DealtLaunch>{{0, us}, {1, us}, {1, 0}}, Needs{{}, {}, {}}, 1), (Blocks{0, 0, 0}));
}

/// Never much worse than all at block 0, and better on the whole.
TEST(Deal, RandomListsEndSoonerOnTheWhole) {
  std::mt19937_64 random(7);
  double dealt = 0, together = 0;
  for (int list = 0; list < 200; ++list) {
    std::vector<DealtLaunch> launches;
    Needs needs;
    for (std::uint32_t l = 0; l < 20; ++l) {
      launches.push_back({static_cast<std::uint32_t>(random() % 40), static_cast<double>(random() % 5) * us});
      std::vector<std::uint32_t> need;
      for (std::uint32_t before = 0; before < l; ++before)
        if (random() % 8 == 0) need.push_back(before);
      needs.push_back(need);
    }
    const Blocks first = first_blocks(launches, needs, 33);
    ASSERT_TRUE(std::ranges::all_of(first, [](std::uint32_t block) { return block < 33; }));
    dealt += end_of_walk(launches, needs, first, 33), together += end_of_walk(launches, needs, Blocks(20), 33);
  }
  EXPECT_LT(dealt, 0.9 * together);
}

}  // namespace
}  // namespace cermet
