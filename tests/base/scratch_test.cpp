#include "base/scratch.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace cermet {
namespace {

constexpr std::int64_t mib = 1 << 20;
std::byte* data_of(const Scratch::Tensor& x) { return x.view.as<std::byte>(); }

TEST(Scratch, WhatWasGivenBackIsTakenAgain) {
  Scratch scratch;
  const std::byte* first = data_of(Scratch::Tensor(scratch, DType::u8, {4 * mib}));
  const Scratch::Tensor again(scratch, DType::f32, {2, mib / 4});
  EXPECT_EQ(data_of(again), first) << "a smaller one fits";
  EXPECT_EQ(again.view.shape, (Shape{2, mib / 4}));
  const Scratch::Tensor other(scratch, DType::u8, {2 * mib});
  EXPECT_NE(data_of(other), first) << "the first is in use";
}

TEST(Scratch, TheSmallestThatFitsIsTaken) {
  Scratch scratch;
  const std::byte *small = nullptr, *large = nullptr;
  {
    const Scratch::Tensor a(scratch, DType::u8, {8 * mib}), b(scratch, DType::u8, {3 * mib});
    large = data_of(a);
    small = data_of(b);
  }
  Scratch::Tensor a(scratch, DType::u8, {3 * mib});
  const Scratch::Tensor moved = std::move(a), b(scratch, DType::u8, {3 * mib});
  EXPECT_EQ(data_of(moved), small);
  EXPECT_EQ(data_of(b), large);
}

TEST(Scratch, KeepsBlocksThatAreNeitherSmallNorLarge) {
  Scratch scratch;
  for (const std::int64_t bytes : {mib, Scratch::most_kept + 1}) {
    const Scratch::Tensor passing(scratch, DType::u8, {bytes});
  }
  EXPECT_EQ(scratch.blocks(), 0u);
  {
    std::vector<Scratch::Tensor> many;
    for (std::size_t i = 0; i < Scratch::most_blocks + 1; ++i) many.emplace_back(scratch, DType::u8, Shape{2 * mib});
  }
  EXPECT_EQ(scratch.blocks(), Scratch::most_blocks);
  const Scratch::Tensor larger(scratch, DType::u8, {Scratch::most_kept});
  EXPECT_EQ(scratch.blocks(), Scratch::most_blocks - 1) << "one makes room for what none is large enough for";
  scratch.clear();
  EXPECT_EQ(scratch.blocks(), 0u);
}

}  // namespace
}  // namespace cermet
