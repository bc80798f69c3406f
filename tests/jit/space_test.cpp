// A sample of the points of the spaces of kernels for Hopper, compiled; tests/kernel_cuda binds and launches all of
// them.
#include <random>

#include "op/schema/operator.hpp"
#include "tests/jit/architectures.hpp"

namespace cermet {
namespace {

struct SampledCall {
  OpKind op;
  std::vector<std::optional<TensorType>> types;
  Attributes attributes;
  const char* kernel;
};

TensorType sampled_type(DType dtype, std::initializer_list<Dim> dims) { return {dtype, dims}; }

TEST(KernelSpaces, PointsCompile) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  using enum DType;
  const TensorType cache = sampled_type(bf16, {1024, 8, 16, 128});
  const SampledCall list[] = {
      {OpKind::linear, {sampled_type(bf16, {512, 1024}), sampled_type(bf16, {1536, 1024})}, {}, "gemm.linear.hopper"},
      {OpKind::scaled_mm,
       {sampled_type(i8, {512, 1024}), sampled_type(i8, {1024, 1024}), sampled_type(f32, {512}),
        sampled_type(f32, {1024})},
       {{"out_dtype", "bf16"}},
       "gemm.scaled_mm.hopper"},
      {OpKind::grouped_linear,
       {sampled_type(bf16, {256, 1024}), sampled_type(bf16, {16, 768, 1024}), sampled_type(i32, {17})},
       {},
       "gemm.grouped_linear.hopper"},
      {OpKind::linear, {sampled_type(bf16, {1, 4096}), sampled_type(bf16, {6144, 4096})}, {}, "gemv.linear"},
      {OpKind::scaled_mm,
       {sampled_type(i8, {1, 4096}), sampled_type(i8, {4096, 4096}), sampled_type(f32, {1}), sampled_type(f32, {4096})},
       {{"out_dtype", "bf16"}},
       "gemv.scaled_mm"},
      {OpKind::rms_norm, {sampled_type(bf16, {512, 4096}), sampled_type(bf16, {4096})}, {}, "rowwise.rms_norm"},
      {OpKind::incre_flash_attention,
       {sampled_type(bf16, {4, 32, 128}), cache, cache, sampled_type(i32, {4, 256}), sampled_type(i32, {4})},
       {},
       "attention.decode"},
      {OpKind::incre_flash_attention,
       {sampled_type(bf16, {512, 32, 64}), sampled_type(bf16, {1024, 8, 16, 64}), sampled_type(bf16, {1024, 8, 16, 64}),
        sampled_type(i32, {1, 256}), sampled_type(i32, {1}), sampled_type(i32, {2})},
       {},
       "attention.prefill_paged"},
  };
  const std::unique_ptr<Device> device = make_null_device(90);
  std::mt19937_64 random(20260302);
  std::vector<CaseProgram> programs;
  for (const SampledCall& sampled : list) {
    Problem problem = make_problem(definition(sampled.op), sampled.types, sampled.attributes);
    problem.target = device->target();
    bool found = false;
    for (const Kernel* kernel : cuda::kernels_of(sampled.op)) {
      if (kernel->name != sampled.kernel) continue;
      ASSERT_FALSE(kernel->declines(problem)) << kernel->name;
      found = true;
      const Config point = *space_of(*kernel, problem).sample(random);
      for (cuda::Program& program : kernel->programs(problem, point)) {
        if (program.fallback) continue;
        program.may_spill = true;  // what a tuner finds out by measuring
        programs.push_back({std::move(program), fmt::format("{}, {}", kernel->name, point.to_string())});
      }
    }
    EXPECT_TRUE(found) << sampled.kernel;
  }
  expect_compiles(programs, *device->target());
}

}  // namespace
}  // namespace cermet
