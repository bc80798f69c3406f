// The spaces of CUDA kernels, on the null device: their own candidates are points, and every point is a program that
// could be compiled and launched.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/case_problem.hpp"

namespace cermet {
namespace {

TEST(KernelSpaces, HoldTheKernelsOwnCandidatesForEveryCase) {
  for (const int compute_capability : {75, 80, 90}) {
    const auto device = make_null_device(compute_capability);
    for (const Kernel* kernel : cuda::all_kernels())
      for (const Case& recipe : definition(kernel->op).cases()) {
        const Problem problem = case_problem(kernel->op, recipe, device->target());
        if (kernel->declines(problem)) continue;
        const ConfigSpace space = space_of(*kernel, problem);
        for (const Config& config : kernel->configs(problem))
          EXPECT_EQ(space.fault_of(config).value_or(""), "")
              << kernel->name << " case " << recipe.name << " on " << compute_capability;
      }
  }
}

struct SpaceCall {
  OpKind op;
  std::vector<std::optional<TensorType>> types;
  Attributes attributes;
  const char* kernel;  ///< whose space must have more than its own candidates
};

TensorType space_type(DType dtype, std::initializer_list<Dim> dims) { return {dtype, dims}; }

/// A shape of each family, as models have them.
std::vector<SpaceCall> space_calls() {
  using enum DType;
  const TensorType cache = space_type(bf16, {1024, 8, 16, 128});
  return {
      {OpKind::linear, {space_type(bf16, {512, 4096}), space_type(bf16, {6144, 4096})}, {}, "gemm.linear.hopper"},
      {OpKind::scaled_mm,
       {space_type(i8, {512, 4096}), space_type(i8, {4096, 4096}), space_type(f32, {512}), space_type(f32, {4096})},
       {{"out_dtype", "bf16"}},
       "gemm.scaled_mm.hopper"},
      {OpKind::scaled_mm,
       {space_type(f8_e4m3, {512, 4096}), space_type(f8_e4m3, {4096, 4096}), space_type(f32, {512}),
        space_type(f32, {4096})},
       {{"out_dtype", "bf16"}},
       "gemm.scaled_mm.hopper"},
      {OpKind::grouped_linear,
       {space_type(bf16, {256, 2048}), space_type(bf16, {16, 768, 2048}), space_type(i32, {17})},
       {},
       "gemm.grouped_linear.hopper"},
      {OpKind::grouped_linear,
       {space_type(bf16, {8, 2048}), space_type(bf16, {16, 768, 2048}), space_type(i32, {17})},
       {},
       "gemv.grouped_linear"},
      {OpKind::linear, {space_type(bf16, {1, 4096}), space_type(bf16, {6144, 4096})}, {}, "gemv.linear"},
      {OpKind::rms_norm, {space_type(bf16, {512, 4096}), space_type(bf16, {4096})}, {}, "rowwise.rms_norm"},
      {OpKind::softmax, {space_type(f32, {512, 8192})}, {}, "rowwise.softmax"},
      {OpKind::silu, {space_type(bf16, {512, 4096})}, {}, "pointwise.silu"},
      {OpKind::incre_flash_attention,
       {space_type(bf16, {4, 32, 128}), cache, cache, space_type(i32, {4, 256}), space_type(i32, {4})},
       {},
       "attention.decode"},
      {OpKind::incre_flash_attention,
       {space_type(bf16, {512, 32, 128}), cache, cache, space_type(i32, {1, 256}), space_type(i32, {1}),
        space_type(i32, {2})},
       {},
       "attention.prefill_paged"},
  };
}

TEST(KernelSpaces, EveryPointIsBoundAndLaunched) {
  const auto device = make_null_device(90);
  for (const SpaceCall& shape : space_calls()) {
    Problem problem = make_problem(definition(shape.op), shape.types, shape.attributes);
    problem.target = device->target();
    if (shape.types.size() > 1 && shape.types[1]) problem.constant_inputs = 2;
    std::size_t of_named = 0;
    for (const Candidate& candidate : explain_selection(problem).candidates) {
      if (candidate.decline) continue;
      const Kernel& kernel = *candidate.kernel;
      const std::vector<Config> points = space_of(kernel, problem).points();
      if (kernel.name == shape.kernel) of_named = points.size();
      std::set<std::string> texts;
      for (const Config& point : points) {
        SCOPED_TRACE(fmt::format("{}, {}", kernel.name, point.to_string()));
        EXPECT_TRUE(texts.insert(point.to_string()).second);
        EXPECT_EQ(parse_config(point.to_string()), point);
        if (kernel.cost) {
          EXPECT_GT(kernel.cost(problem, point, limits_of(problem.target)), 0);
        }
        for (const cuda::Program& program : kernel.programs(problem, point)) {
          EXPECT_GT(program.threads, 0);
          EXPECT_LE(program.threads, 1024);
          EXPECT_LE(program.shared_bytes, device->target()->shared_bytes) << "excluded before it is compiled";
        }
        NullLaunches null(problem, kernel, point);
        EXPECT_FALSE(null.launch(null.inputs(), null.outputs()).empty());
      }
    }
    EXPECT_GT(of_named, 4u) << shape.kernel;
  }
}

/// Fields reach the program: another value is another program, but for those that a launch reads.
TEST(KernelSpaces, FieldsReachTheProgram) {
  const auto device = make_null_device(90);
  Problem problem = make_problem(definition(OpKind::linear),
                                 {space_type(DType::bf16, {512, 4096}), space_type(DType::bf16, {6144, 4096})}, {});
  problem.target = device->target();
  const Kernel& kernel = *choose_by_name(problem, "gemm.linear.hopper", "").kernel;
  const auto task = [&](const char* config) { return kernel.programs(problem, parse_config(config)).front().task; };
  EXPECT_EQ(task("tile_m=128 tile_n=128 stages=4").find("raster"), std::string::npos);
  EXPECT_NE(task("tile_m=128 tile_n=128 stages=4 raster=2").find(".raster = 2"), std::string::npos);
  EXPECT_NE(task("tile_m=64 tile_n=96 stages=5").find(".block_m = 64, .block_n = 96, .stages = 5"), std::string::npos);
  Problem row = make_problem(definition(OpKind::linear),
                             {space_type(DType::bf16, {1, 4096}), space_type(DType::bf16, {6144, 4096})}, {});
  row.target = device->target();
  const Kernel& gemv = *choose_by_name(row, "gemv.linear", "").kernel;
  const auto program = [&](const char* config) { return gemv.programs(row, parse_config(config)).front(); };
  EXPECT_EQ(program("stream=1").task, program("default").task);
  EXPECT_EQ(program("stream=1 warps=4").threads, 32 * 5);
  EXPECT_NE(program("stream=1 ring_kib=48").task.find(".ring_bytes = 49152"), std::string::npos);
  EXPECT_LT(program("stream=1 ring_kib=48").shared_bytes, program("stream=1").shared_bytes);
}

}  // namespace
}  // namespace cermet
