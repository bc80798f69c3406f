// Keys of calls: what they stand for, and that a hash alone never decides.
#include "api/call_key.hpp"

#include <gtest/gtest.h>

#include <list>

namespace cermet::api {
namespace {

/// Tensors of a call, without memory.
class Shapes {
 public:
  explicit Shapes(std::initializer_list<std::vector<std::int64_t>> shapes, DLDataType type = {kDLFloat, 32, 1})
      : shapes_(shapes) {
    for (auto& shape : shapes_)
      tensors_.push_back({nullptr, {kDLCPU, 0}, static_cast<int>(shape.size()), type, shape.data(), nullptr, 0});
    for (const DLTensor& t : tensors_) list_.push_back(&t);
  }
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;
  CallShape call() const { return {"op", list_}; }

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::list<DLTensor> tensors_;
  std::vector<const DLTensor*> list_;
};

constexpr PerRowAxis<std::uint64_t> closed{0, 0};

TEST(CallKey, StandsForARangeOnlyWhereItIsOpen) {
  const Shapes five({{5, 16}, {5, 16}}), eight({{8, 16}, {8, 16}}), nine({{9, 16}, {9, 16}}), apart({{5, 16}, {8, 16}});
  const CallKey exact(five.call(), closed), open(five.call(), {3, 0}), first(apart.call(), {1, 0});
  EXPECT_TRUE(exact.matches(five.call()));
  EXPECT_FALSE(exact.matches(eight.call()));
  EXPECT_TRUE(open.matches(eight.call()));
  EXPECT_FALSE(open.matches(nine.call())) << "of another range";
  EXPECT_FALSE(open.matches(apart.call())) << "one of them has another size";
  EXPECT_TRUE(first.matches(Shapes({{6, 16}, {8, 16}}).call()));
  EXPECT_FALSE(first.matches(eight.call())) << "where both are equal, both may be open";
  EXPECT_FALSE(open.matches(Shapes({{5, 16}, {5, 17}}).call()));
  EXPECT_FALSE(open.matches(Shapes({{5, 16}}).call()));
  EXPECT_FALSE(open.matches(Shapes({{5, 16}, {5, 16}, {5, 16}}).call()));
  EXPECT_FALSE(open.matches(Shapes({{5, 16}, {5, 16, 1}}).call()));
  EXPECT_FALSE(open.matches(Shapes({{5, 16}, {5, 16}}, {kDLBfloat, 16, 1}).call()));
}

TEST(CallKey, TheSecondAxisIsOneOfRowsWhereAThirdFollows) {
  EXPECT_EQ(Shapes({{3, 100}}).call().rows, (PerRowAxis<std::int64_t>{3, -1}));
  EXPECT_EQ(Shapes({{3, 100, 7}}).call().rows, (PerRowAxis<std::int64_t>{3, 100}));
  EXPECT_EQ(Shapes({{3, 100, 7, 9}}).call().range_ends, (PerRowAxis<std::int64_t>{4, 128}));
  EXPECT_EQ(Shapes({{100}}).call().range_ends, (PerRowAxis<std::int64_t>{128, 0}));
  EXPECT_EQ(Shapes({{}}).call().rows, (PerRowAxis<std::int64_t>{-1, -1}));
  EXPECT_EQ(Shapes({{0, 1, 2}}).call().range_ends, (PerRowAxis<std::int64_t>{0, 1}));
}

/// A hash step is invertible, so that the last size can be chosen for any hash.
TEST(CallKey, EqualHashesAreNotEqualKeys) {
  const auto step = [](std::uint64_t hash, std::uint64_t value) {
    return (std::rotl(hash, 5) ^ value) * 0x517cc1b727220a95u;
  };
  const std::uint64_t form = std::uint64_t{kDLFloat | 32 << 8 | 1 << 16} << 8;
  const auto prefix =
      step(step(step(0, form | 3), 16),
           form | 5);  // an input [2, 16], whose first size is its row axis, and the form of one of rank 4
  const auto at = [&](std::uint64_t third) { return std::rotl(step(step(step(prefix, 7), 16), third), 5); };
  const std::int64_t last = 9, other_last = static_cast<std::int64_t>(at(5) ^ at(6) ^ static_cast<std::uint64_t>(last));
  const Shapes a({{2, 16}, {7, 16, 5, last}}), b({{2, 16}, {7, 16, 6, other_last}});
  ASSERT_EQ(a.call().hash(), b.call().hash());
  CallTable<int> table;
  table.insert(CallKey(a.call(), closed), 1);
  EXPECT_EQ(table.find(b.call()), nullptr);
  table.insert(CallKey(b.call(), closed), 2);
  EXPECT_EQ(table.find(a.call())->value, 1);
  EXPECT_EQ(table.find(b.call())->value, 2);
}

TEST(CallTable, ForgetsTheLeast) {
  CallTable<int> table;
  const Shapes a({{2}}), b({{3}}), c({{5}});
  table.insert(CallKey(a.call(), closed), 2);
  table.insert(CallKey(b.call(), closed), 1);
  table.insert(CallKey(c.call(), closed), 3);
  table.erase_least([](int value) { return value; });
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find(b.call()), nullptr);
  EXPECT_NE(table.find(c.call()), nullptr);
}

}  // namespace
}  // namespace cermet::api
