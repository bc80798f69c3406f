#include "select/tune/operands.hpp"

#include <gtest/gtest.h>

#include "format/element.hpp"

namespace cermet {
namespace {

Problem scaled_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto type = [](DType dtype, Dims dims) { return std::optional(TensorType{dtype, std::move(dims)}); };
  return make_problem(definition(OpKind::scaled_mm),
                      {type(DType::i8, {m, k}), type(DType::i8, {n, k}), type(DType::f32, {m}), type(DType::f32, {n})},
                      {{"out_dtype", "bf16"}});
}

OwnedTensor operand(const Problem& problem, std::size_t i, const OperandValues& values, ThreadPool& pool,
                    std::int64_t set = 0) {
  return make_bench_operand(problem.input(i), BenchFill(problem, i, values), pool, set);
}

/// Fraction of the first `distance` elements that equal the one `distance` further on.
double repeated(const TensorView& view, std::int64_t distance) {
  std::int64_t equal = 0;
  for (std::int64_t i = 0; i < distance; ++i)
    equal +=
        format::load_element(view.data, view.dtype, i) == format::load_element(view.data, view.dtype, i + distance);
  return static_cast<double>(equal) / static_cast<double>(distance);
}

TEST(BenchOperands, NoPeriodAndTheDistributionOfTheCases) {
  ThreadPool pool(1);
  const OwnedTensor codes = operand(scaled_product(64, 8, 8192), 0, {}, pool);
  for (std::int64_t distance = 1 << 10; distance <= 1 << 18; distance *= 2)
    EXPECT_NEAR(repeated(codes.view, distance), 1.0 / 256, 0.008) << distance;
  std::vector<int> histogram(256);
  double sum = 0;
  for (std::int64_t i = 0; i < codes.view.elements(); ++i) {
    const int code = codes.view.as<const std::int8_t>()[i];
    ++histogram[static_cast<std::size_t>(code + 128)];
    sum += code;
  }
  EXPECT_NEAR(sum / static_cast<double>(codes.view.elements()), -0.5, 1);
  for (const int count : histogram) EXPECT_NEAR(count, 2048, 700);
}

TEST(BenchOperands, SeedOperandAndSetChooseTheBytes) {
  ThreadPool one(1), three(3);
  const Problem problem = scaled_product(512, 512, 256);
  const auto bytes = [&](std::size_t i, std::uint64_t seed, std::int64_t set, ThreadPool& pool) {
    const OwnedTensor tensor = operand(problem, i, {seed, Paging::scattered}, pool, set);
    return std::vector<std::byte>(tensor.memory.data(), tensor.memory.data() + tensor.memory.size());
  };
  const auto base = bytes(0, 0, 0, one);
  EXPECT_EQ(base, bytes(0, 0, 0, three)) << "threads";
  EXPECT_NE(base, bytes(1, 0, 0, one)) << "operand";
  EXPECT_NE(base, bytes(0, 1, 0, one)) << "seed";
  EXPECT_NE(base, bytes(0, 0, 1, one)) << "set";
}

TEST(BenchOperands, RepeatWhereAsked) {
  ThreadPool pool(1);
  const OwnedTensor codes = operand(scaled_product(64, 8, 8192), 0, {.period = 1 << 16}, pool, 3);
  EXPECT_EQ(repeated(codes.view, 1 << 16), 1);
  EXPECT_LT(repeated(codes.view, 1 << 15), 0.01);
}

TEST(BenchOperands, PiecesMakeUpTheWhole) {
  ThreadPool pool(2);
  const Problem problem = scaled_product(64, 64, 1031);
  const OwnedTensor whole = operand(problem, 1, {}, pool);
  const std::int64_t count = whole.view.elements();
  std::vector<std::byte> pieces(static_cast<std::size_t>(count));
  const BenchFill values(problem, 1, {});
  for (std::int64_t first = 0; first < count; first += 777)
    values.write(pieces.data() + first, first, std::min<std::int64_t>(777, count - first), 0, pool);
  EXPECT_TRUE(std::equal(pieces.begin(), pieces.end(), whole.memory.data()));
}

}  // namespace
}  // namespace cermet
