#include "tests/onnx/fuzz.hpp"

#include <gtest/gtest.h>

namespace cermet::onnx::test {
namespace {

TEST(Fuzz, SeedsRun) {
  int number = 0;
  for (const ::onnx::ModelProto& seed : seed_models()) {
    const Folder folder;
    SCOPED_TRACE(seed.graph().node(0).op_type() + " of seed " + std::to_string(number++));
    const auto model = std::make_shared<const Model>(read_model(folder.write(seed)));
    EXPECT_TRUE(unsupported_parts(*model).empty());
  }
}

TEST(Fuzz, ChangedFilesGiveOneErrorOrRun) {
  const FuzzCounts counts = fuzz(0, 3000);
  EXPECT_GT(counts.refused, 1000);
  EXPECT_GT(counts.ran, 300) << "too few cases go all the way";
}

}  // namespace
}  // namespace cermet::onnx::test
