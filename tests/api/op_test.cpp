// Operators through the C interface, linked against the installed form of the library: what works, and every error with
// its status and message.
#include <gtest/gtest.h>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"

namespace cermet::test {
namespace {

/// rms_norm(x[2, 4], weight[4]) on two threads; x rows are 1 1 1 1 and 2 2 2 2.
class RmsNorm : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK) << cermet_last_error_message(); }
  void TearDown() override {
    cermet_op_destroy(op);
    cermet_destroy(handle);
  }

  cermet_status create(int constant_weight = 0, const char* name = "rms_norm") {
    cermet_op_destroy(op);
    op = nullptr;
    inputs[1].is_constant = constant_weight;
    return cermet_op_create(handle, name, inputs.data(), inputs.size(), &eps, 1, &op);
  }
  cermet_status run(const DLTensor* x_tensor, const DLTensor* w_tensor, DLTensor* y_tensor) {
    const DLTensor* in[] = {x_tensor, w_tensor};
    DLTensor* out[] = {y_tensor};
    return cermet_op_run(op, in, 2, out, 1, nullptr, 0, nullptr);
  }
  cermet_status run() { return run(x.get(), w.get(), y.get()); }
  /// Runs with an invalid copy of x.
  template <class Bend>
  cermet_status run_bent(Bend&& bend) {
    Floats copy = x;
    copy.dl.data = copy.memory.data();
    bend(copy);
    return run(copy.get(), w.get(), y.get());
  }
  /// Creates with invalid descriptors, which are restored.
  template <class Bend>
  cermet_status create_bent(Bend&& bend) {
    const auto kept = inputs;
    const auto kept_eps = eps;
    const auto kept_x = x_shape, kept_w = w_shape;
    bend();
    const cermet_status status = create();
    inputs = kept;
    eps = kept_eps;
    std::copy(kept_x.begin(), kept_x.end(), x_shape.begin());
    std::copy(kept_w.begin(), kept_w.end(), w_shape.begin());
    return status;
  }

  std::vector<std::int64_t> x_shape{2, 4}, w_shape{4};
  std::vector<cermet_descriptor> inputs{{"f32", 2, x_shape.data(), nullptr, 0}, {"f32", 1, w_shape.data(), nullptr, 0}};
  cermet_attribute eps{"eps", CERMET_FLOAT, 0, 0.0, nullptr, nullptr, 0, nullptr, nullptr};
  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  Floats x{{2, 4}, {1, 1, 1, 1, 2, 2, 2, 2}}, w{{4}, {1, 2, 3, 4}}, y{{2, 4}, std::vector<float>(8, -1)};
  const std::vector<float> expected{1, 2, 3, 4, 1, 2, 3, 4};
};

TEST_F(RmsNorm, Computes) {
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  EXPECT_STREQ(cermet_op_kernel(op), "rowwise.rms_norm");
  EXPECT_EQ(cermet_op_output_count(op), 1u);
  EXPECT_EQ(cermet_op_output_alias(op, 0), -1);
  cermet_descriptor output{};
  ASSERT_EQ(cermet_op_output(op, 0, &output), CERMET_OK);
  EXPECT_STREQ(output.dtype, "f32");
  ASSERT_EQ(output.ndim, 2);
  EXPECT_EQ(output.shape[0], 2);
  EXPECT_EQ(output.shape[1], 4);
  expect_refused(cermet_op_output(op, 1, &output), {"output", "below 1"});
}

TEST_F(RmsNorm, OutlivesItsHandle) {
  ASSERT_EQ(create(), CERMET_OK);
  cermet_destroy(handle);
  handle = nullptr;
  ASSERT_EQ(run(), CERMET_OK);
  EXPECT_EQ(y.memory, expected);
}

TEST_F(RmsNorm, OptionalOperandMayBeAbsent) {
  inputs[1].dtype = nullptr;
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(run(x.get(), nullptr, y.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, std::vector<float>(8, 1));
  expect_refused(run(), {"rms_norm", "input 1 (weight)", "expected no tensor, as at creation"});
}

TEST_F(RmsNorm, ConstantIsCopiedAndMustBeSet) {
  ASSERT_EQ(create(1), CERMET_OK);
  expect_refused(run(x.get(), nullptr, y.get()), {"input 1 (weight)", "constant", "before the first run"});
  ASSERT_EQ(cermet_op_set_constant(op, 1, w.get()), CERMET_OK) << cermet_last_error_message();
  expect_refused(run(), {"input 1 (weight)", "expected no tensor for a constant"});
  w.memory.assign(4, 100);
  ASSERT_EQ(run(x.get(), nullptr, y.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  expect_refused(cermet_op_set_constant(op, 0, x.get()), {"input 0", "constant"});
  expect_refused(cermet_op_set_constant(op, 9, x.get()), {"input 9", "constant"});
}

TEST_F(RmsNorm, LeadingDimensionsMayBeStrided) {
  ASSERT_EQ(create(), CERMET_OK);
  Floats wide{{2, 4}, {1, 1, 1, 1, 9, 9, 2, 2, 2, 2}};
  wide.strides = {6, 1};
  ASSERT_EQ(run(wide.get(), w.get(), y.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
}

TEST_F(RmsNorm, ByteOffsetCounts) {
  ASSERT_EQ(create(), CERMET_OK);
  Floats shifted{{2, 4}, {7, 7, 1, 1, 1, 1, 2, 2, 2, 2}};
  shifted.dl.byte_offset = 2 * sizeof(float);
  ASSERT_EQ(run(shifted.get(), w.get(), y.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
}

TEST_F(RmsNorm, InPlaceIsTakenWhereTheSchemaAllowsIt) {
  ASSERT_EQ(create(), CERMET_OK);
  ASSERT_EQ(run(x.get(), w.get(), x.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(x.memory, expected);
  Floats rows{{2, 4}, std::vector<float>(12, 1)}, shifted = rows;
  shifted.dl.data = rows.memory.data() + 2;
  expect_refused(run(rows.get(), w.get(), shifted.get()), {"output 0 (y)", "memory of its own", "input 0 (x)"});
}

TEST_F(RmsNorm, RunRefusesWhatTheDescriptorDoesNotSay) {
  ASSERT_EQ(create(), CERMET_OK);
  expect_refused(run(nullptr, w.get(), y.get()), {"rms_norm", "input 0 (x)", "found none"});
  expect_refused(run(x.get(), w.get(), nullptr), {"output 0 (y)", "found none"});
  const DLTensor* in[] = {x.get(), w.get(), w.get()};
  DLTensor* out[] = {y.get(), y.get()};
  expect_refused(cermet_op_run(op, in, 3, out, 1, nullptr, 0, nullptr), {"at most 2 inputs", "found 3"});
  expect_refused(cermet_op_run(op, in, 2, out, 2, nullptr, 0, nullptr), {"1 outputs", "found 2"});
  expect_refused(cermet_op_run(op, in, 2, nullptr, 1, nullptr, 0, nullptr), {"outputs", "NULL"});
  expect_refused(cermet_op_run(op, in, 2, out, 1, nullptr, 0, &x), {"rms_norm", "stream", "none on cpu"});
  expect_refused(run_bent([](Floats& t) { t.dl.dtype = {kDLBfloat, 16, 1}; }), {"input 0 (x)", "f32", "bf16"});
  expect_refused(run_bent([](Floats& t) { t.dl.dtype.lanes = 4; }), {"input 0 (x)", "float32x4"});
  expect_refused(run_bent([](Floats& t) { t.dl.device.device_type = kDLCUDA; }),
                 {"input 0 (x)", "memory of the host (kDLCPU)", "memory of cuda:0 (kDLCUDA)"});
  expect_refused(run_bent([](Floats& t) { t.dl.device.device_type = kDLMetal; }),
                 {"input 0 (x)", "kDLCPU", "device type 8"});
  expect_refused(run_bent([](Floats& t) { t.dl.data = nullptr; }), {"input 0 (x)", "memory of 32 bytes", "none"});
  expect_refused(run_bent([](Floats& t) { t.dl.byte_offset = 2; }), {"input 0 (x)", "aligned to 4 bytes"});
  expect_refused(run_bent([](Floats& t) { t.shape = {2, 3}; }), {"input 0 (x)", "f32[2, 4]", "[2, 3]"});
  expect_refused(run_bent([](Floats& t) { t.shape = {8}; }), {"input 0 (x)", "f32[2, 4]", "1 dimensions"});
  expect_refused(run_bent([](Floats& t) { t.strides = {4, 2}; }), {"input 0 (x)", "contiguous", "[4, 2]"});
  expect_refused(run_bent([](Floats& t) { t.strides = {-4, 1}; }), {"input 0 (x)", "negative"});
  expect_refused(run_bent([](Floats& t) { t.strides = {INT64_MAX, 1}; }), {"input 0 (x)", "2^63"});
  y.strides = {2, 1};
  expect_refused(run(), {"output 0 (y)", "keep elements apart"});
  EXPECT_EQ(y.memory, std::vector<float>(8, -1)) << "a refused run wrote its result";
}

TEST_F(RmsNorm, StridesOfTheDescriptorBind) {
  const std::vector<std::int64_t> strides{6, 1}, illegal{4, 2};
  inputs[0].strides = strides.data();
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  expect_refused(run(), {"input 0 (x)", "[6, 1]", "[4, 1]"});
  inputs[0].strides = illegal.data();
  expect_refused(create(), {"input 0 (x)", "contiguous"});
}

TEST_F(RmsNorm, CreateRefusesWhatTheSchemaDoesNotSay) {
  expect_refused(create(0, "rmsnorm"), {"operator", "rms_norm", "\"rmsnorm\""});
  expect_refused(create_bent([&] { inputs[0].dtype = "float"; }), {"rms_norm", "input 0", "bf16", "\"float\""});
  expect_refused(create_bent([&] { inputs[0].dtype = "i8"; }), {"rms_norm", "operand 0 (x)", "i8"});
  expect_refused(create_bent([&] { inputs[0].dtype = nullptr; }), {"rms_norm", "operand 0 (x)", "nothing"});
  expect_refused(create_bent([&] { inputs[0].ndim = 9; }), {"input 0", "0 to 8 dimensions", "9"});
  expect_refused(create_bent([&] { inputs[0].ndim = -1; }), {"input 0", "-1"});
  expect_refused(create_bent([&] { inputs[0].shape = nullptr; }), {"input 0", "shape", "NULL"});
  expect_refused(create_bent([&] { w_shape[0] = 5; }), {"operand 1 (weight)"});
  expect_refused(create_bent([&] { x_shape[0] = -2; }), {"operand 0 (x)", "non-negative"});
  expect_refused(create_bent([&] { x_shape[0] = std::int64_t{1} << 61; }), {"2^63"});
  expect_refused(create_bent([&] { eps.name = "epsilon"; }), {"rms_norm", "epsilon"});
  expect_refused(create_bent([&] { eps.name = nullptr; }), {"rms_norm", "attributes", "NULL"});
  expect_refused(create_bent([&] { eps.kind = CERMET_STRING; }), {"eps", "NULL"});
  expect_refused(create_bent([&] { eps.kind = CERMET_BOOL; }), {"eps", "float", "bool"});
  expect_refused(create_bent([&] { eps.kind = static_cast<cermet_attribute_kind>(7); }),
                 {"eps", "cermet_attribute_kind", "7"});
  const cermet_attribute twice[] = {eps, eps};
  expect_refused(cermet_op_create(handle, "rms_norm", inputs.data(), 2, twice, 2, &op), {"eps", "twice"});
  expect_refused(cermet_op_create(nullptr, "rms_norm", inputs.data(), 2, nullptr, 0, &op), {"handle", "NULL"});
  expect_refused(cermet_op_create(handle, nullptr, inputs.data(), 2, nullptr, 0, &op), {"name", "NULL"});
  expect_refused(cermet_op_create(handle, "rms_norm", nullptr, 2, nullptr, 0, &op), {"inputs", "NULL"});
  expect_refused(cermet_op_create(handle, "rms_norm", inputs.data(), 2, nullptr, 3, &op), {"attributes", "NULL"});
  expect_refused(cermet_op_create(handle, "rms_norm", inputs.data(), 2, nullptr, 0, nullptr), {"op", "NULL"});
  EXPECT_EQ(op, nullptr);
}

TEST_F(RmsNorm, NullDeviceChecksAndComputesNothing) {
  cermet_destroy(handle);
  ASSERT_EQ(cermet_create("null", 1, &handle), CERMET_OK);
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, std::vector<float>(8, -1));
  EXPECT_EQ(cermet_computes(handle), 0);
  w.shape = {3};
  expect_refused(run(), {"input 1 (weight)"});
}

#ifdef CERMET_HAS_CUDA_PLUGIN
TEST_F(RmsNorm, NullGpuChecksAsAGpuDoes) {
  cermet_destroy(handle);
  ASSERT_EQ(cermet_create("null:sm_90", 1, &handle), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_computes(handle), 0);
  ASSERT_EQ(create(1), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(cermet_op_set_constant(op, 1, w.get()), CERMET_OK)
      << "constants may come from the host: " << cermet_last_error_message();
  const auto run_on = [&](DLDevice x_device, DLDevice y_device) {
    x.dl.device = x_device;
    y.dl.device = y_device;
    return run(x.get(), nullptr, y.get());
  };
  const DLDevice host{kDLCPU, 0}, gpu{kDLCUDA, 0}, second{kDLCUDA, 1};
  ASSERT_EQ(run_on(gpu, gpu), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, std::vector<float>(8, -1)) << "it computes nothing";
  expect_refused(run_on(host, gpu), {"rms_norm", "input 0 (x)", "expected memory of cuda:0 (kDLCUDA)",
                                     "found memory of the host (kDLCPU)"});
  expect_refused(run_on(second, gpu),
                 {"input 0 (x)", "expected memory of cuda:0 (kDLCUDA)", "found memory of cuda:1 (kDLCUDA)"});
  expect_refused(run_on(gpu, host),
                 {"output 0 (y)", "expected memory of cuda:0 (kDLCUDA)", "found memory of the host (kDLCPU)"});
  w.dl.device = second;
  expect_refused(cermet_op_set_constant(op, 1, w.get()),
                 {"input 1 (weight)", "cuda:0 (kDLCUDA) or the host (kDLCPU)", "found memory of cuda:1"});
}
#endif

/// linear(x[5, 64], w[48, 64]) of ones in bf16, with the weight given at each run or packed beforehand.
TEST(Linear, WorkspaceIsCheckedAndOptional) {
  cermet_handle* handle = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  const std::int64_t x_shape[] = {5, 64}, w_shape[] = {48, 64}, y_shape[] = {5, 48};
  constexpr std::uint16_t one = 0x3f80, sixty_four = 0x4280;  // in bf16
  std::vector<std::uint16_t> x(5 * 64, one), w(48 * 64, one), y(5 * 48);
  const auto tensor = [](std::vector<std::uint16_t>& memory, const std::int64_t* shape) {
    return DLTensor{memory.data(), {kDLCPU, 0}, 2, {kDLBfloat, 16, 1}, const_cast<std::int64_t*>(shape), nullptr, 0};
  };
  const DLTensor x_tensor = tensor(x, x_shape), w_tensor = tensor(w, w_shape);
  DLTensor y_tensor = tensor(y, y_shape);
  DLTensor* out[] = {&y_tensor};
  for (const int constant : {0, 1}) {
    const cermet_descriptor inputs[] = {{"bf16", 2, x_shape, nullptr, 0}, {"bf16", 2, w_shape, nullptr, constant}};
    cermet_op* op = nullptr;
    ASSERT_EQ(cermet_op_create(handle, "linear", inputs, 2, nullptr, 0, &op), CERMET_OK) << cermet_last_error_message();
    if (constant) {
      ASSERT_EQ(cermet_op_set_constant(op, 1, &w_tensor), CERMET_OK);
    }
    const DLTensor* in[] = {&x_tensor, constant ? nullptr : &w_tensor};
    const std::size_t size = cermet_op_workspace_size(op);
    std::vector<char> memory(size + 128);
    char* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    for (const bool own : {false, true}) {
      std::fill(y.begin(), y.end(), std::uint16_t{0});
      ASSERT_EQ(cermet_op_run(op, in, 2, out, 1, own ? nullptr : aligned, own ? 0 : size, nullptr), CERMET_OK)
          << cermet_last_error_message();
      EXPECT_EQ(y, std::vector<std::uint16_t>(5 * 48, sixty_four));
    }
    expect_refused(cermet_op_run(op, in, 2, out, 1, aligned + 1, size, nullptr), {"workspace", "aligned to 64"});
    if (size > 0) {
      expect_refused(cermet_op_run(op, in, 2, out, 1, aligned, size - 1, nullptr), {"workspace", "bytes"});
    }
    expect_refused(cermet_op_run(op, in, 2, out, 1, nullptr, 8, nullptr), {"workspace", "size 0"});
    cermet_op_destroy(op);
  }
  cermet_destroy(handle);
}

}  // namespace
}  // namespace cermet::test
