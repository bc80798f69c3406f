#include "runtime/context.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

TEST(Context, OfTheHostHasThreadsAndNoQueue) {
  const Context context({"cpu", 3});
  EXPECT_EQ(context.pool().size(), 3);
  EXPECT_EQ(context.device_spec(), "cpu");
  EXPECT_TRUE(context.description().starts_with("cpu (3 threads, ")) << context.description();
  EXPECT_TRUE(context.computes());
  EXPECT_EQ(context.stream(), nullptr);
  EXPECT_EQ(context.queue().device, nullptr);
  EXPECT_EQ(context.queue().programs, nullptr);
}

TEST(Context, SharesAllButTheStream) {
  const Context context({"null:sm_90", 1}), other = context.with_own_stream();
  EXPECT_EQ(context.description(), "null:sm_90");
  EXPECT_EQ(&other.device(), &context.device());
  EXPECT_EQ(&other.pool(), &context.pool());
  EXPECT_EQ(other.queue().programs, context.queue().programs);
  ASSERT_NE(context.stream(), nullptr);
  EXPECT_NE(other.stream(), context.stream());
  const auto pool = std::make_shared<ThreadPool>(2);
  EXPECT_EQ(&Context({"cpu", 0, pool}).pool(), pool.get());
}

TEST(Context, KeepsWhatItMeasured) {
  Context context({"cpu", 1});
  const Context other = context.with_own_stream();
  EXPECT_EQ(context.limits(), nullptr);
  const DeviceLimits& limits = context.measure_limits(0.001);
  EXPECT_GT(limits.read_bytes_per_second, 0);
  EXPECT_GT(limits.operations_per_second(DType::f32), 0);
  EXPECT_GE(limits.operations_per_second(DType::bf16), limits.operations_per_second(DType::f32));
  EXPECT_EQ(other.limits(), &limits) << "contexts that share a device share its limits";
}

TEST(Context, RefusesWhatIsNotThere) {
  EXPECT_EQ(error_text([] {
              Context({"gpu", 1});
            }),
            "device 'gpu': expected cpu, cuda, cuda:INDEX, null or null:sm_CC");
  EXPECT_EQ(error_text([] { Context({"cpu", -1}); }), "threads: expected 0 to 1024, found -1");
  EXPECT_EQ(error_text([] { Context({"cpu", 1025}); }), "threads: expected 0 to 1024, found 1025");
  Context null({"null:sm_90", 1});
  EXPECT_EQ(error_text([&] { null.measure_limits(0.1); }), "device null:sm_90: expected one that computes");
  Context host({"cpu", 1});
  EXPECT_EQ(error_text([&] { host.measure_gpu_limits(0.1); }),
            "device " + host.device().name() + ": expected a GPU that computes");
}

TEST(ModelledTime, IsThatOfTheSlowerPart) {
  DeviceLimits limits;
  limits.read_bytes_per_second = 100;
  limits.f32_operations_per_second = 10;
  limits.bf16_operations_per_second = 40;
  const Problem product =
      make_problem(definition(OpKind::linear), {TensorType{DType::bf16, {2, 8}}, TensorType{DType::bf16, {4, 8}}}, {});
  const ModelledTime time = modelled_time(product, {120, 200}, limits);
  EXPECT_DOUBLE_EQ(time.moving, 2);
  EXPECT_DOUBLE_EQ(time.computing, 3) << "at the peak of bf16";
  EXPECT_DOUBLE_EQ(time.seconds(), 3);
  EXPECT_EQ(time.bound_by(), "arithmetic");
  const Problem norm = make_problem(definition(OpKind::rms_norm), {TensorType{DType::bf16, {2, 8}}}, {});
  EXPECT_DOUBLE_EQ(modelled_time(norm, {5, 200}, limits).computing, 0.5) << "not a matrix product: float32";
  EXPECT_EQ(modelled_time(norm, {5, 200}, limits).bound_by(), "bandwidth");
}

}  // namespace
}  // namespace cermet
