#include "base/tensor.hpp"

#include <gtest/gtest.h>

#include "base/buffer.hpp"
#include "base/error.hpp"

// The sanitizers' allocators stop the program on impossible sizes unless configured to fail as malloc does.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace cermet {
namespace {

/// Offsets, in elements, of every row of a view of i32 with these strides.
std::vector<std::int64_t> row_offsets(const Shape& shape, const Shape& strides, int trailing = 1) {
  static std::int32_t memory[4096];
  const Rows rows(TensorView(memory, DType::i32, shape, strides), trailing);
  std::vector<std::int64_t> offsets;
  for (std::int64_t r = 0; r < rows.count(); ++r)
    offsets.push_back(reinterpret_cast<std::int32_t*>(rows.row(r)) - memory);
  return offsets;
}

using Offsets = std::vector<std::int64_t>;

TEST(Rows, OfADenseTensor) {
  EXPECT_EQ(row_offsets({2, 3, 4}, {12, 4, 1}), (Offsets{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(row_offsets({2, 3, 4}, {12, 4, 1}, 2), (Offsets{0, 12}));
  EXPECT_EQ(row_offsets({2, 3, 4}, {12, 4, 1}, 3), (Offsets{0}));
  EXPECT_EQ(row_offsets({}, {}, 0), (Offsets{0}));
}

TEST(Rows, OfAPaddedTensor) { EXPECT_EQ(row_offsets({2, 3, 4}, {30, 10, 1}), (Offsets{0, 10, 20, 30, 40, 50})); }

TEST(Rows, OfASliceAlongAMiddleAxis) { EXPECT_EQ(row_offsets({2, 2, 4}, {100, 4, 1}), (Offsets{0, 4, 100, 104})); }

TEST(Rows, OfThreeLeadingAxesThatDoNotFormOneRun) {
  EXPECT_EQ(row_offsets({2, 2, 2, 3}, {1000, 3, 100, 1}), (Offsets{0, 100, 3, 103, 1000, 1100, 1003, 1103}));
}

TEST(Rows, AxesOfOneElementDoNotMatter) {
  EXPECT_EQ(row_offsets({2, 1, 3, 4}, {12, 777, 4, 1}), (Offsets{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(row_offsets({1, 1, 4}, {5, 9, 1}), (Offsets{0}));
}

TEST(Rows, RepeatedRowsHaveStrideZero) {
  EXPECT_EQ(row_offsets({2, 3, 4}, {4, 0, 1}), (Offsets{0, 0, 0, 4, 4, 4}));
  EXPECT_EQ(row_offsets({2, 3, 4}, {0, 4, 1}), (Offsets{0, 4, 8, 0, 4, 8}));
  EXPECT_EQ(row_offsets({3, 4}, {0, 1}), (Offsets{0, 0, 0}));
}

TEST(Rows, NegativeStridesWalkBackwards) {
  std::int32_t memory[12] = {};
  const Rows rows(TensorView(memory + 8, DType::i32, {3, 4}, {-4, 1}));
  EXPECT_EQ(reinterpret_cast<std::int32_t*>(rows.row(2)), memory);
}

TEST(Rows, ATensorWithoutAxesIsOneRow) {
  EXPECT_EQ(row_offsets({}, {}), (Offsets{0}));
  std::int32_t memory[1];
  EXPECT_EQ(Rows(TensorView(memory, DType::i32, {}, {})).length(), 1);
}

TEST(Rows, OfNothing) {
  EXPECT_EQ(row_offsets({0, 4}, {4, 1}).size(), 0u);
  EXPECT_EQ(row_offsets({3, 0}, {0, 1}).size(), 3u);
}

TEST(TensorView, KnowsWhetherItIsDense) {
  EXPECT_TRUE(TensorView(nullptr, DType::f32, {2, 3}).is_dense());
  EXPECT_FALSE(TensorView(nullptr, DType::f32, {2, 3}, {4, 1}).is_dense());
  EXPECT_TRUE(TensorView(nullptr, DType::f32, {1, 3}, {99, 1}).is_dense());
  EXPECT_TRUE(TensorView(nullptr, DType::f32, {0, 3}, {99, 7}).is_dense());
}

TEST(Shape, HasAtMostEightAxes) {
  Shape shape{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(shape.elements(), 40320);
  EXPECT_THROW(shape.push_back(9), Error);
  EXPECT_EQ(Shape().elements(), 1);
}

TEST(Bind, ReplacesSymbols) {
  SymbolValues values;
  values.set(Symbol("T"), 5);
  EXPECT_EQ(bind({Dim::symbol("T") * 2 + 1, 7}, values), (Shape{11, 7}));
}

TEST(AlignedBuffer, IsAlignedAndMovable) {
  for (const std::int64_t bytes : {1, 63, 64, 65, 100000}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % AlignedBuffer::alignment, 0u);
    EXPECT_EQ(buffer.size(), bytes);
    std::byte* data = buffer.data();
    EXPECT_EQ(AlignedBuffer(std::move(buffer)).data(), data);
  }
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBuffer, NamesTheSizeThatItCannotGet) {
  for (const std::int64_t bytes : {std::int64_t{1} << 60, std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    try {
      AlignedBuffer buffer(bytes);
      ADD_FAILURE() << "room for " << bytes << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::out_of_memory);
      EXPECT_EQ(std::string(error.what()), fmt::format("memory: expected room for {} bytes, found none", bytes));
    }
  }
}

TEST(OwnedTensor, RefusesSizesThatOverflow) {
  EXPECT_THROW(OwnedTensor(DType::f64, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
}

}  // namespace
}  // namespace cermet
