// bf16 dot products: when they are taken, and that they sum in the order of float32 products.
#include "kernel/cpu/gemm/bf16.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/limits.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

const Kernel& product_kernel_named(std::string_view name) {
  for (const Kernel* kernel : cpu::all_kernels())
    if (kernel->name == name) return *kernel;
  throw std::out_of_range(std::string(name));
}

/// The reason to decline with CERMET_BF16_PRODUCTS=`wanted`, or "taken"; in a fresh process, because the variable is
/// read once.
[[noreturn]] void ask_with(const char* wanted) {
  setenv("CERMET_BF16_PRODUCTS", wanted, 1);
  try {
    std::fputs(cpu::pairs_decline().value_or("taken").c_str(), stderr);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
  }
  std::exit(0);
}

TEST(Bf16ProductsDeathTest, TheEnvironmentForcesThem) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(ask_with("sometimes"), testing::ExitedWithCode(0),
              "CERMET_BF16_PRODUCTS: expected auto, on or off, found 'sometimes'");
  if (cpu::supported_isas().back() < cpu::Isa::avx512_bf16) GTEST_SKIP() << "this machine has no bf16 dot product";
  EXPECT_EXIT(ask_with("on"), testing::ExitedWithCode(0), "taken");
  EXPECT_EXIT(ask_with("off"), testing::ExitedWithCode(0), "switched off by CERMET_BF16_PRODUCTS");
}

TEST(Bf16Products, OtherInstructionSetsAndTypesDecline) {
  const Kernel& kernel = product_kernel_named("gemm.linear.bf16");
  const auto problem = [](DType x, DType w, bool constant) {
    Problem p = make_problem(*find_operator("linear"), {TensorType{x, {2, 8}}, TensorType{w, {4, 8}}}, {});
    p.constant_inputs = constant ? 2 : 0;
    return p;
  };
  EXPECT_EQ(kernel.declines(problem(DType::f32, DType::bf16, true)), "x is f32, not bf16");
  EXPECT_EQ(kernel.declines(problem(DType::bf16, DType::f16, true)), "w is f16, not bf16");
  EXPECT_EQ(kernel.declines(problem(DType::bf16, DType::bf16, false)),
            "weight is not constant, so it cannot be prepacked");
  cpu::force_isa(cpu::supported_isas().front());
  EXPECT_EQ(kernel.declines(problem(DType::bf16, DType::bf16, true)),
            fmt::format("{} has no bf16 dot product", name_of(cpu::active_isa())));
  cpu::force_isa(cpu::supported_isas().back());
}

TEST(Bf16Products, TheRatioIsMeasuredOnce) {
  if (cpu::supported_isas().back() < cpu::Isa::avx512_bf16) GTEST_SKIP() << "this machine has no bf16 dot product";
  cpu::force_isa(cpu::Isa::avx512_bf16);
  const double first = cpu::bf16_ratio();
  EXPECT_GT(first, 0);  // how large, a sanitizer changes
  EXPECT_LT(first, 8);
  EXPECT_EQ(cpu::bf16_ratio(), first);
}

TEST(Bf16Products, SumInTheOrderOfFloat32Products) {
  if (cpu::supported_isas().back() < cpu::Isa::avx512_bf16) GTEST_SKIP() << "this machine has no bf16 dot product";
  cpu::force_isa(cpu::Isa::avx512_bf16);
  ThreadPool pool(2);
  for (const std::int64_t m : {1, 14, 33})
    for (const std::int64_t k : {1, 7, 4099}) {
      const CaseData data =
          make_case_data(*find_operator("linear"),
                         {"order",
                          {CaseOperand{{DType::bf16, {m, k}}}, CaseOperand{{DType::bf16, {35, k}}, {}, 0, true}},
                          {{"out_dtype", "f32"}}});
      std::vector<OwnedTensor> results;
      for (const std::string_view name : {"gemm.linear.bf16", "gemm.linear.packed"}) {
        BoundOp op(data.problem, product_kernel_named(name), pool);
        op.prepack(1, data.inputs[1]);
        results.emplace_back(DType::f32, Shape{m, 35});
        op.run(data.inputs, std::span(&results.back().view, 1));
      }
      EXPECT_EQ(std::memcmp(results[0].memory.data(), results[1].memory.data(),
                            static_cast<std::size_t>(results[0].memory.size())),
                0)
          << m << " rows, K " << k;
    }
}

}  // namespace
}  // namespace cermet
