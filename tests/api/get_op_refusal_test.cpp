// Operators by name: constants, kernels and element types that the caller names, and errors.
#include <gtest/gtest.h>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"

namespace cermet::test {
namespace {

/// linear(x[2, 4], w[3, 4]).
class NamedOp : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK) << cermet_last_error_message(); }
  void TearDown() override {
    cermet_callable_destroy(callable);
    cermet_weight_destroy(weight);
    cermet_destroy(handle);
  }
  cermet_status get(const char* name = "linear", const std::vector<cermet_attribute>& attributes = {}) {
    cermet_callable_destroy(callable);
    callable = nullptr;
    const DLTensor* in[] = {x.get(), w.get()};
    return cermet_get_op(handle, name, in, 2, attributes.data(), attributes.size(), &options, &callable);
  }
  cermet_status call(const DLTensor* second) {
    const DLTensor* in[] = {x.get(), second};
    DLTensor* out[] = {y.get()};
    return cermet_call(callable, in, 2, out, 1, nullptr);
  }
  template <class Change>
  cermet_status get_with(Change&& change) {
    const cermet_get_op_options kept = options;
    change();
    const cermet_status status = get();
    options = kept;
    return status;
  }

  cermet_handle* handle = nullptr;
  cermet_callable* callable = nullptr;
  cermet_weight* weight = nullptr;
  cermet_get_op_options options = cermet_get_op_defaults();
  Floats x{{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}, w{{3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1}},
      y{{2, 3}, std::vector<float>(6, -1)};
  const std::vector<float> expected{1, 2, 10, 5, 6, 26};
};

TEST_F(NamedOp, ConstantsAreKeptForEveryShape) {
  options.constants = 2;
  ASSERT_EQ(get(), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(call(nullptr), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  expect_refused(call(w.get()), {"linear", "input 1 (w)", "expected no tensor for a constant"});
  EXPECT_EQ(cermet_callable_bound_count(callable), 1u);
  x.shape = {1, 4};
  y.shape = {1, 3};
  y.memory.assign(6, -1);
  ASSERT_EQ(call(nullptr), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, (std::vector<float>{1, 2, 10, -1, -1, -1}));
  options.constants = 4;
  expect_refused(get(), {"linear", "constants", "2 inputs", "0x4"});
  options.constants = 2;
  w.dl.data = nullptr;
  expect_refused(get(), {"linear", "input 1 (w)", "memory of 48 bytes", "none"});
}

TEST_F(NamedOp, WeightsAreShared) {
  ASSERT_EQ(cermet_weight_create(handle, w.get(), nullptr, &weight), CERMET_OK) << cermet_last_error_message();
  cermet_weight* const weights[] = {nullptr, weight};
  options.weights = weights;
  ASSERT_EQ(get(), CERMET_OK) << cermet_last_error_message();
  const std::size_t bytes = cermet_weight_bytes(weight);
  EXPECT_GT(bytes, 0u);
  cermet_callable* first = callable;
  callable = nullptr;
  ASSERT_EQ(get(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_weight_bytes(weight), bytes);
  cermet_weight_detach(weight);
  w.memory.assign(12, 100);
  ASSERT_EQ(call(nullptr), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  cermet_callable_destroy(first);
  cermet_handle* other = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &other), CERMET_OK);
  std::swap(handle, other);
  expect_refused(get(), {"linear", "input 1 (w)", "a weight of the operator's handle", "another"});
  std::swap(handle, other);
  cermet_destroy(other);
}

TEST_F(NamedOp, KernelAndConfigurationMayBeNamed) {
  ASSERT_EQ(get(), CERMET_OK);
  const std::string chosen = cermet_callable_kernel(callable), config = cermet_callable_config(callable);
  options.kernel = chosen.c_str();
  options.config = config.c_str();
  ASSERT_EQ(get(), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(call(w.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  EXPECT_EQ(cermet_callable_kernel(callable), chosen);
  EXPECT_EQ(cermet_callable_config(callable), config);
  expect_refused(get_with([&] { options.kernel = "rowwise.rms_norm"; }),
                 {"linear: kernel", "expected one of", chosen, "rowwise.rms_norm"});
  expect_refused(get_with([&] { options.config = "tile=7"; }), {"linear: config", "tile"});
}

TEST_F(NamedOp, BytesAreWhatTheOperandTakes) {
  std::vector<std::uint8_t> a{1, 0, 1, 1}, b{1, 1, 0, 1}, out(4, 9);
  std::int64_t shape[] = {4};
  DLTensor left{a.data(), {kDLCPU, 0}, 1, {kDLUInt, 8, 1}, shape, nullptr, 0}, right = left, result = left;
  right.data = b.data();
  result.data = out.data();
  const DLTensor* in[] = {&left, &right};
  DLTensor* results[] = {&result};
  const auto run = [&](const char* op) {
    cermet_callable_destroy(callable);
    callable = nullptr;
    const cermet_status made = cermet_get_op(handle, op, in, 2, nullptr, 0, &options, &callable);
    return made == CERMET_OK ? cermet_call(callable, in, 2, results, 1, nullptr) : made;
  };
  ASSERT_EQ(run("logical_and"), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 0, 0, 1})) << "bool";
  left.dtype.code = right.dtype.code = 6;  // kDLBool of DLPack 1.x
  ASSERT_EQ(run("logical_or"), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 1, 1, 1}));
  left.dtype.code = right.dtype.code = kDLUInt;
  ASSERT_EQ(run("add"), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(out, (std::vector<std::uint8_t>{2, 1, 1, 2})) << "u8";

  std::int64_t matrix[] = {2, 2};
  left.ndim = right.ndim = 2;
  left.shape = right.shape = matrix;
  expect_refused(run("scaled_mm"), {"scaled_mm", "input 0 (a)", "f8_e4m3", "dtypes", "DLPack uint8"});
  const char* dtypes[] = {"f8_e4m3", "f8_e5m2"};
  options.dtypes = dtypes;
  std::vector<float> sums(4);
  result = {sums.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, matrix, nullptr, 0};
  a.assign(4, 0x38);  // 1 in e4m3
  b.assign(4, 0x3c);  // 1 in e5m2
  ASSERT_EQ(run("scaled_mm"), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(sums, std::vector<float>(4, 2));
  dtypes[0] = "f32";
  expect_refused(run("scaled_mm"), {"scaled_mm", "input 0 (a)", "expected f32", "DLPack uint8"});
  dtypes[0] = "fp7";
  expect_refused(run("scaled_mm"), {"scaled_mm", "input 0", "\"fp7\""});
}

TEST_F(NamedOp, GetOpRefusesWhatTheSchemaDoesNotSay) {
  expect_refused(get("liner"), {"operator", "linear", "\"liner\""});
  cermet_attribute attribute{"out_type", CERMET_STRING, 0, 0, "bf16", nullptr, 0, nullptr, nullptr};
  expect_refused(get("linear", {attribute}), {"linear", "out_type"});
  attribute.name = "out_dtype";
  expect_refused(get("linear", {attribute, attribute}), {"linear", "out_dtype", "twice"});
  ASSERT_EQ(get("linear", {attribute}), CERMET_OK) << cermet_last_error_message();
  expect_refused(call(w.get()), {"linear", "output 0 (y)", "bf16", "found f32"});
  expect_refused(get_with([&] { options.struct_size = 0; }), {"cermet_get_op_options", "struct_size"});
  const DLTensor* in[] = {x.get(), w.get()};
  expect_refused(cermet_get_op(nullptr, "linear", in, 2, nullptr, 0, nullptr, &callable), {"handle", "NULL"});
  expect_refused(cermet_get_op(handle, nullptr, in, 2, nullptr, 0, nullptr, &callable), {"name", "NULL"});
  expect_refused(cermet_get_op(handle, "linear", nullptr, 2, nullptr, 0, nullptr, &callable), {"inputs", "NULL"});
  expect_refused(cermet_get_op(handle, "linear", in, 2, nullptr, 1, nullptr, &callable), {"attributes", "NULL"});
  expect_refused(cermet_get_op(handle, "linear", in, 2, nullptr, 0, nullptr, nullptr), {"callable", "NULL"});
  expect_refused(cermet_get_op(handle, "linear", in, 1, nullptr, 0, nullptr, &callable),
                 {"linear", "operand 1 (w)", "nothing"});
  w.dl.dtype.lanes = 2;
  expect_refused(get(), {"linear", "input 1 (w)", "float32x2"});
  w.dl.dtype.lanes = 1;
  w.shape = {3, -4};
  expect_refused(get(), {"linear", "operand 1 (w)", "non-negative"});
  w.shape.assign(9, 1);
  expect_refused(get(), {"linear", "input 1", "0 to 8 dimensions", "9"});
  w.shape = {3, 4};
  w.get()->shape = nullptr;
  expect_refused(cermet_get_op(handle, "linear", in, 2, nullptr, 0, nullptr, &callable),
                 {"linear", "input 1", "shape", "NULL"});
}

TEST_F(NamedOp, CallRefusesWhatDoesNotFitAndStaysUsable) {
  ASSERT_EQ(get(), CERMET_OK) << cermet_last_error_message();
  const DLTensor* in[] = {x.get(), w.get()};
  DLTensor* out[] = {y.get(), y.get()};
  cermet_call_result result{};
  expect_refused(cermet_call(callable, in, 2, out, 2, nullptr), {"linear", "1 outputs", "2"});
  expect_refused(cermet_call(callable, in, 2, nullptr, 1, nullptr), {"outputs", "NULL"});
  expect_refused(cermet_call(callable, nullptr, 2, out, 1, nullptr), {"inputs", "NULL"});
  expect_refused(cermet_call(nullptr, in, 2, out, 1, nullptr), {"callable", "NULL"});
  expect_refused(cermet_call(callable, in, 2, out, 1, &x), {"linear", "stream", "none on cpu"});
  expect_refused(cermet_call_output(callable, in, 2, 1, &result), {"linear", "below 1"});
  expect_refused(cermet_call_output(callable, in, 2, 0, nullptr), {"result", "NULL"});
  expect_refused(cermet_call_output_count(callable, in, 2, nullptr), {"count", "NULL"});
  w.shape = {4, 3};
  expect_refused(call(w.get()), {"linear", "operand 1 (w)", "[4, 3]"});
  w.shape = {3, 4};
  x.strides = {1, 2};
  expect_refused(call(w.get()), {"linear", "input 0 (x)", "contiguous", "[1, 2]"});
  x.strides = {};
  expect_refused(call(nullptr), {"linear", "operand 1 (w)", "nothing"});
  EXPECT_EQ(y.memory, std::vector<float>(6, -1)) << "a refused call wrote its result";
  ASSERT_EQ(call(w.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, expected);
  cermet_callable_destroy(nullptr);
  EXPECT_STREQ(cermet_callable_kernel(nullptr), "");
  EXPECT_STREQ(cermet_callable_config(nullptr), "");
}

TEST_F(NamedOp, StateIsSharedWithItsResult) {
  Floats k{{1, 1, 2}, {7, 8}}, cache{{1, 1, 8, 2}, std::vector<float>(16)};
  std::int64_t slots[] = {1}, one[] = {1};
  const DLTensor slot{slots, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, one, nullptr, 0};
  const DLTensor* in[] = {k.get(), k.get(), cache.get(), cache.get(), &slot};
  ASSERT_EQ(cermet_get_op(handle, "kv_cache_write", in, 5, nullptr, 0, nullptr, &callable), CERMET_OK)
      << cermet_last_error_message();
  std::size_t count = 0;
  ASSERT_EQ(cermet_call_output_count(callable, in, 5, &count), CERMET_OK);
  EXPECT_EQ(count, 2u);
  cermet_call_result result{};
  ASSERT_EQ(cermet_call_output(callable, in, 5, 1, &result), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(result.shared_input, 3);
}

}  // namespace
}  // namespace cermet::test
