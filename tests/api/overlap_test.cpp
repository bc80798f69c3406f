// Whether strided tensors share memory, against a list of their bytes.
#include "api/overlap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace cermet::api {
namespace {

/// Offsets of all bytes; nothing where two elements share one.
std::set<std::int64_t> bytes_of(const TensorView& view, std::int64_t base, bool& overlaps) {
  std::set<std::int64_t> bytes;
  for (std::int64_t e = 0; e < view.elements(); ++e) {
    std::int64_t remaining = e, offset = 0;
    for (int axis = view.shape.rank() - 1; axis >= 0; --axis)
      offset += remaining % view.shape[axis] * view.strides[axis], remaining /= view.shape[axis];
    for (std::size_t b = 0; b < size_of(view.dtype); ++b)
      overlaps = !bytes.insert(base + offset * byte_size(view.dtype) + static_cast<std::int64_t>(b)).second || overlaps;
  }
  return bytes;
}

struct RandomView {
  std::int64_t base = 0;
  TensorView view;

  RandomView(std::byte* memory, std::mt19937_64& random) {
    const auto below = [&](int end) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end)); };
    constexpr DType types[] = {DType::u8, DType::f16, DType::f32};
    const DType dtype = types[below(3)];
    Shape shape, strides;
    for (std::int64_t axis = 0, rank = below(4); axis < rank; ++axis)
      shape.push_back(1 + below(4)), strides.push_back(below(14));
    base = below(40) * byte_size(dtype);
    view = TensorView(memory + base, dtype, shape, strides);
  }
};

TEST(Overlap, IsThatOfTheBytes) {
  std::mt19937_64 random(7);
  std::vector<std::byte> memory(4096);
  int shared = 0, apart = 0, overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    const RandomView a(memory.data(), random), b(memory.data(), random);
    bool a_overlaps = false, b_overlaps = false;
    const auto of_a = bytes_of(a.view, a.base, a_overlaps), of_b = bytes_of(b.view, b.base, b_overlaps);
    const bool both = std::ranges::any_of(of_a, [&](std::int64_t byte) { return of_b.contains(byte); });
    ASSERT_EQ(share_memory(a.view, b.view), both)
        << a.view.shape.to_string() << a.view.strides.to_string() << a.base << ", " << b.view.shape.to_string()
        << b.view.strides.to_string() << b.base;
    ASSERT_EQ(overlaps_itself(a.view.shape, a.view.strides), a_overlaps)
        << a.view.shape.to_string() << a.view.strides.to_string();
    (both ? shared : apart) += 1;
    overlapping += a_overlaps;
  }
  EXPECT_GT(shared, 1000);
  EXPECT_GT(apart, 1000);
  EXPECT_GT(overlapping, 1000);
}

TEST(Overlap, LargeTensorsTakeNoTime) {
  const Shape cache{4096, 16, 8, 128}, strides{2 * 16 * 8 * 128, 8 * 128, 128, 1};
  auto* const memory = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  const TensorView keys(memory, DType::bf16, cache, strides),
      values(memory + 2 * 16 * 8 * 128, DType::bf16, cache, strides);
  EXPECT_FALSE(share_memory(keys, values));
  EXPECT_TRUE(share_memory(keys, TensorView(memory + 2 * 16 * 8 * 128 - 2, DType::bf16, cache, strides)));
  EXPECT_FALSE(overlaps_itself({8, 20, 4, 64}, {5120, 64, 1280, 1}));
}

}  // namespace
}  // namespace cermet::api
