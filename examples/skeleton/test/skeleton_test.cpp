// The skeletons of an operator, kernels, a rewrite rule and a compile step, checked like the real ones.
#include <gtest/gtest.h>

#include "graph/idle_casts.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "kernel/tile_program.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "tests/jit/architectures.hpp"
#include "tests/kernel/conformance.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/region.hpp"

namespace cermet {

namespace center_op {
OpSpec define();
}
bool idle_cast(const Rule&, GraphEditor& editor, NodeId anchor);
namespace cpu {
extern const Kernel rowwise_rms_norm_plain;
}
namespace cuda::rowwise_rms_norm_plain_file {
extern const Kernel rowwise_rms_norm_plain;
}

namespace {

OpDefinition center() { return {{{}, "center"}, center_op::define()}; }  // a row of ops.inc would give kind and name

TEST(Operator, ReferenceCentresRows) {
  const OpDefinition op = center();
  for (const Case& test_case : op.cases()) {
    const CaseData data = make_case_data(op, test_case);
    const Expected expected = run_reference(data);
    ASSERT_EQ(expected.outputs.size(), 1u);
    const TensorView& y = expected.outputs[0].view;
    ASSERT_EQ(y.shape, data.inputs[0].shape) << test_case.name;
    const double strength = data.problem.attributes.number("strength");
    for (std::int64_t row = 0; row < y.elements(); row += y.shape.back()) {
      double before = 0, after = 0;
      for (std::int64_t i = row; i < row + y.shape.back(); ++i) {
        before += load(data.inputs[0], i);
        after += load(y, i);
      }
      EXPECT_TRUE(std::isnan(before) ? std::isnan(after) : std::abs(after - (1 - strength) * before) < 1e-9)
          << test_case.name;
    }
  }
}

TEST(Operator, RefusesByName) {
  const OpDefinition op = center();
  const auto error = [&](TensorType type, const Attributes& attributes) {
    return error_text([&] { make_problem(op, {type}, attributes); });
  };
  EXPECT_EQ(error({DType::f32, {Dim::symbol("T"), 4}}, {}), "no error");
  EXPECT_EQ(error({DType::f32, {}}, {}), "center: operand 0 (x): expected at least 1 dimensions, found f32[]");
  EXPECT_EQ(error({DType::f32, {4}}, {{"strength", -1.0}}),
            "center: attribute 'strength': expected a non-negative number, found -1.0");
}

TEST(Kernel, Conforms) {
  const Kernel* const kernel = &cpu::rowwise_rms_norm_plain;
  expect_conforms(definition(OpKind::rms_norm), {&kernel, 1}, false);
}

Problem rows_without_weight(Dim rows, std::int64_t length) {
  return make_problem(definition(OpKind::rms_norm), {TensorType{DType::f32, {3, std::move(rows), length}}}, {});
}

TEST(CudaKernel, LaunchesItemsOfEightRows) {
  const Kernel& kernel = cuda::rowwise_rms_norm_plain_file::rowwise_rms_norm_plain;
  NullLaunches null(rows_without_weight(67, 40), kernel);
  const auto launches = null.launch(null.inputs(), null.outputs(4));
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].items, 26);
  const Problem weighted =
      make_problem(definition(OpKind::rms_norm), {TensorType{DType::f32, {3, 40}}, TensorType{DType::f32, {40}}}, {});
  EXPECT_EQ(kernel.declines(weighted), "a weight is given; this kernel takes rows without one");
}

TEST(CudaKernel, CompilesForEveryArchitecture) {
  if (const std::string reason = no_toolchain(); !reason.empty()) GTEST_SKIP() << reason;
  for (const int compute_capability : compute_capabilities) {
    const auto device = make_null_device(compute_capability);
    const std::vector<CaseProgram> programs =
        programs_of(cuda::rowwise_rms_norm_plain_file::rowwise_rms_norm_plain, *device->target());
    ASSERT_EQ(programs.size(), 1u);
    expect_compiles(programs, *device->target());
  }
}

/// What follows a product is told once, for the kernels of both backends: here a residual after a linear.
TEST(Hole, StepsFollowFromTheRegion) {
  Problem product =
      make_problem(definition(OpKind::linear), {TensorType{DType::f32, {4, 8}}, TensorType{DType::f32, {6, 8}}}, {});
  Problem sum =
      make_problem(definition(OpKind::add), {TensorType{DType::f32, {4, 6}}, TensorType{DType::f32, {4, 6}}}, {});
  Region region = chained(std::move(product), std::move(sum));
  region.anchor = 0;  // the product: its kernels are asked
  const TileProgramOrReason epilogue = product_epilogue(region);
  ASSERT_EQ(epilogue.reason, std::nullopt);
  const TileProgram& program = epilogue.program;
  ASSERT_EQ(program.steps.size(), 1u) << program.to_string();
  EXPECT_EQ(program.steps[0].function, OpKind::add);
  ASSERT_EQ(program.extras.size(), 1u);
  EXPECT_EQ(program.extras[0].operand, 2u);
  EXPECT_EQ(program.extras[0].extent, TileProgram::Extent::element);
}

TEST(RewriteRule, KeepsWhatMatters) {
  const Rule rule{.name = "idle-cast",
                  .summary = "cast(x) -> x, of one type",
                  .rounding = RoundingClass::exact,
                  .anchor = OpKind::cast,
                  .apply = idle_cast};
  const Rewritten after =
      rewrite(parse_graph(read_text(CERMET_SOURCE_DIR "/examples/skeleton/test/idle_casts.before.graph")), {&rule, 1});
  verify(after.graph);
  expect_golden("../examples/skeleton/test/idle_casts.after.graph", to_text(after.graph));
}

TEST(CompileStep, KeepsWhatMatters) {
  const Graph before = parse_graph(read_text(CERMET_SOURCE_DIR "/examples/skeleton/test/idle_casts.before.graph"));
  const Graph after = remove_idle_casts(before);
  verify(after);
  expect_golden("../examples/skeleton/test/idle_casts.after.graph", to_text(after));
}

}  // namespace
}  // namespace cermet
