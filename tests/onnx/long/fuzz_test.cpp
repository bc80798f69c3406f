#include <gtest/gtest.h>

#include "tests/onnx/fuzz.hpp"

namespace cermet::onnx::test {
namespace {

class FuzzLong : public ::testing::TestWithParam<int> {};

TEST_P(FuzzLong, ChangedFilesGiveOneErrorOrRun) {
  const FuzzCounts counts = fuzz(static_cast<std::uint64_t>(GetParam()) * 5000, 5000);
  EXPECT_GT(counts.ran, 500) << "too few cases go all the way";
}

INSTANTIATE_TEST_SUITE_P(All, FuzzLong, ::testing::Range(0, 20));

}  // namespace
}  // namespace cermet::onnx::test
