// topk_gating for every number of experts: how many a lane has decides how they are read, and models have 60, 72, 96,
// 160, 192, 384 as well as powers of two.
#include "tests/jit/architectures.hpp"

namespace cermet {
namespace {

CaseProgram gating_program(DType logits, std::int64_t experts, const Target& target) {
  Attributes attributes;
  attributes.set("k", std::min<std::int64_t>(experts, 6));
  Problem problem = make_problem(definition(OpKind::topk_gating), {TensorType{logits, {4, experts}}}, attributes);
  problem.target = &target;
  for (const Kernel* kernel : cuda::kernels_of(OpKind::topk_gating))
    if (!kernel->declines(problem)) return {kernel->programs(problem).front(), problem.to_string()};
  return {};
}

void expect_all_compile(std::int64_t step, std::vector<DType> types) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const std::unique_ptr<Device> device = make_null_device(90);
  std::vector<CaseProgram> list;
  for (std::int64_t experts = step; experts <= 512; experts += step)
    for (const DType logits : types) list.push_back(gating_program(logits, experts, *device->target()));
  EXPECT_EQ(list.size(), static_cast<std::size_t>(512 / step) * types.size());
  expect_compiles(list, *device->target());
}

TEST(Gating, WholeLanesOfExpertsCompile) { expect_all_compile(32, {DType::bf16}); }

TEST(LongGating, EveryNumberOfExpertsCompiles) { expect_all_compile(1, {DType::bf16, DType::f32}); }

}  // namespace
}  // namespace cermet
