// What launches are made of: sizes that tasks count in 32 bits.
#include "kernel/cuda/task.hpp"

#include <gtest/gtest.h>

#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::cuda {
namespace {

alignas(64) std::byte memory[64];

TensorView strided(const Shape& shape, const Shape& strides, DType dtype = DType::f32) {
  return {memory, dtype, shape, strides};
}

/// Blocks step through the items by the size of the grid: a number that wraps would begin again.
TEST(Narrow, ALaunchHasNoMoreItemsThanATaskCounts) {
  const auto device = make_null_device(90);
  Plan plan;
  std::vector<LoadedProgram> programs(2);
  programs[0].threads = programs[1].threads = 32;
  programs[1].cluster = 8;
  const TaskQueue queue(*device, plan, programs);
  queue.run(0, most_narrow, 0);
  queue.run(1, most_narrow - 1, 0);
  ASSERT_EQ(plan.launches().size(), 2u);
  for (const Launch& launch : plan.launches()) EXPECT_EQ(launch.shape.blocks, most_narrow);
  EXPECT_EQ(error_text([&] { queue.run(0, most_narrow + 1, 0); }),
            "launch: expected at most 2147482624 work items, found 2147482625");
  EXPECT_EQ(error_text([&] { queue.run(0, std::int64_t{1} << 33, 0, 132); }),
            "launch: expected at most 2147482624 work items, found 8589934592");
}

TEST(Narrow, RowsOfALaunchAreCounted) {
  const std::int64_t many = (std::int64_t{1} << 32) + 3;  // 3 in 32 bits
  const auto rows = [](const TensorView& view) {
    const RowView operand{&view};
    return StridedRows(std::span(&operand, 1)).rows();
  };
  EXPECT_EQ(rows(strided({most_narrow, 8}, {0, 1})), most_narrow);
  EXPECT_EQ(error_text([&] {
              rows(strided({many, 8}, {0, 1}));
            }),
            "row kernel: expected at most 2147482624 rows of a launch, found 4294967299");
  EXPECT_EQ(error_text([&] {
              rows(strided({1 << 20, 1 << 12, 8}, {8, 0, 1}));
            }),
            "row kernel: expected at most 2147482624 rows of a launch, found 4294967296");
}

/// What kernels of products say of operands that are larger than any memory.
std::string refusal_of_product(std::string_view kernel_name, std::int64_t rows) {
  const auto kernels = kernels_of(OpKind::linear);
  const auto kernel = std::ranges::find(kernels, kernel_name, &Kernel::name);
  require(kernel != kernels.end(), "no kernel {}", kernel_name);
  Problem problem =
      make_problem(definition(OpKind::linear),
                   {TensorType{DType::bf16, {Dim(2), Dim(8)}}, TensorType{DType::bf16, {Dim(8), Dim(8)}}}, {});
  problem.constant_inputs = 2;
  NullLaunches null(problem, **kernel);
  const TensorView inputs[] = {strided({rows, 8}, {8, 1}, DType::bf16), strided({8, 8}, {8, 1}, DType::bf16)};
  const TensorView outputs[] = {strided({rows, 8}, {8, 1}, DType::bf16)};
  return error_text([&] { null.launch(inputs, outputs); });
}

TEST(Narrow, RowsOfProductsAreCounted) {
  for (const std::string_view kernel :
       {"gemm.linear.general", "gemm.linear.tensor", "gemm.linear.hopper", "gemv.linear"})
    EXPECT_EQ(refusal_of_product(kernel, (std::int64_t{1} << 32) + 1),
              "product: expected at most 2147482624 rows, found 4294967297")
        << kernel;
}

}  // namespace
}  // namespace cermet::cuda
