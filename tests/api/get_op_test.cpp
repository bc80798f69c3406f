// Operators by name: what they compute as shapes change, what they keep, what they cost and what they refuse.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"
#include "tests/support/heap.hpp"

namespace cermet::test {
namespace {

/// rms_norm(x[.., 4], w[4]).
class GetOp : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK) << cermet_last_error_message(); }
  void TearDown() override {
    cermet_callable_destroy(callable);
    cermet_destroy(handle);
  }
  cermet_status get(const char* name, const std::vector<const DLTensor*>& inputs,
                    const std::vector<cermet_attribute>& attributes = {}) {
    cermet_callable_destroy(callable);
    callable = nullptr;
    return cermet_get_op(handle, name, inputs.data(), inputs.size(), attributes.data(), attributes.size(), &options,
                         &callable);
  }
  cermet_status call(const std::vector<const DLTensor*>& inputs, DLTensor* y) {
    return cermet_call(callable, inputs.data(), inputs.size(), &y, 1, nullptr);
  }
  std::size_t bound() const { return cermet_callable_bound_count(callable); }

  /// Rows of equal elements, 1, 2, 3 and so on, whose norm is 1 in each element.
  static Floats rows(std::vector<std::int64_t> shape) {
    Floats x(shape, {});
    const std::int64_t size = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t i = 0; i < size; ++i) x.memory.push_back(static_cast<float>(1 + i / shape.back()));
    return x;
  }
  static Floats like(const Floats& x) { return {x.shape, std::vector<float>(x.memory.size(), -1)}; }
  static DLTensor* at(Floats& t) {
    t.dl.data = t.memory.data();
    return t.get();
  }
  /// Calls with rows of this shape and checks the result.
  void expect_norms(std::vector<std::int64_t> shape) {
    Floats x = rows(std::move(shape)), y = like(x);
    ASSERT_EQ(call({at(x), at(w)}, at(y)), CERMET_OK) << cermet_last_error_message();
    for (std::size_t i = 0; i < y.memory.size(); ++i) ASSERT_NEAR(y.memory[i], w.memory[i % 4], 1e-5) << i;
  }

  cermet_handle* handle = nullptr;
  cermet_callable* callable = nullptr;
  cermet_get_op_options options = cermet_get_op_defaults();
  Floats w{{4}, {1, 2, 3, 4}}, x = rows({2, 4});
};

TEST_F(GetOp, BindsOnceForEachRangeOfRows) {
  ASSERT_EQ(get("rms_norm", {at(x), at(w)}), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(bound(), 1u);
  EXPECT_STREQ(cermet_callable_kernel(callable), "rowwise.rms_norm");
  for (std::int64_t m = 1; m <= 64; ++m) expect_norms({m, 4});
  EXPECT_EQ(bound(), 8u) << "1, 2, 3 to 4, 5 to 8, .., 33 to 64, and 4, where w is as long as there are rows";
  for (const std::int64_t m : {64, 1, 40, 17, 3}) expect_norms({m, 4});
  EXPECT_EQ(bound(), 8u);
  Floats none({0, 4}, {}), y({0, 4}, {});
  EXPECT_EQ(call({at(none), at(w)}, at(y)), CERMET_OK) << cermet_last_error_message();
}

TEST_F(GetOp, SequencesAndTheirPositionsAreRowsToo) {
  Floats first = rows({1, 5, 4});
  ASSERT_EQ(get("rms_norm", {at(first), at(w)}), CERMET_OK) << cermet_last_error_message();
  for (std::int64_t s = 5; s <= 8; ++s) expect_norms({1, s, 4});
  EXPECT_EQ(bound(), 1u);
  for (std::int64_t b = 5; b <= 8; ++b)
    for (std::int64_t s = 5; s <= 8; ++s) expect_norms({b, s, 4});
  EXPECT_EQ(bound(), 2u);
}

TEST_F(GetOp, OperandsThatShareTheRowsVaryWithThem) {
  const auto add = [&](std::int64_t m) {
    Floats a = rows({m, 4}), b = rows({m, 4}), y = like(a);
    ASSERT_EQ(callable ? CERMET_OK : get("add", {at(a), at(b)}), CERMET_OK) << cermet_last_error_message();
    ASSERT_EQ(call({at(a), at(b)}, at(y)), CERMET_OK) << cermet_last_error_message();
    for (std::size_t i = 0; i < y.memory.size(); ++i) ASSERT_EQ(y.memory[i], 2 * a.memory[i]) << i;
  };
  for (const std::int64_t m : {5, 6, 7, 8}) add(m);
  EXPECT_EQ(bound(), 1u);
  Floats a = rows({7, 4}), b = rows({8, 4}), y = like(a);
  expect_refused(call({at(a), at(b)}, at(y)), {"add", "[7, 4]", "[8, 4]"});
  Floats one = rows({1, 4});
  ASSERT_EQ(call({at(a), at(one)}, at(y)), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory[27], 8) << "a row that is broadcast is another key";
  EXPECT_EQ(bound(), 2u);
  add(6);
}

TEST_F(GetOp, TypesAndOptionalOperandsAreOfTheKey) {
  ASSERT_EQ(get("rms_norm", {at(x)}), CERMET_OK) << cermet_last_error_message();
  Floats y = like(x);
  ASSERT_EQ(call({at(x)}, at(y)), CERMET_OK) << cermet_last_error_message();
  for (const float value : y.memory) EXPECT_NEAR(value, 1, 1e-5);
  ASSERT_EQ(call({at(x), nullptr}, at(y)), CERMET_OK) << "a NULL at the end is none: " << cermet_last_error_message();
  EXPECT_EQ(bound(), 1u);
  expect_norms({2, 4});
  EXPECT_EQ(bound(), 2u);
  const DLTensor* in[] = {at(x)};
  cermet_call_result result{};
  ASSERT_EQ(cermet_call_output(callable, in, 1, 0, &result), CERMET_OK);
  EXPECT_STREQ(result.dtype, "f32");
  std::vector<std::uint16_t> bf16(8, 0x4000), out(8);
  x.dl = {bf16.data(), {kDLCPU, 0}, 2, {kDLBfloat, 16, 1}, x.shape.data(), nullptr, 0};
  DLTensor y16 = x.dl;
  y16.data = out.data();
  in[0] = &x.dl;
  ASSERT_EQ(cermet_call_output(callable, in, 1, 0, &result), CERMET_OK) << cermet_last_error_message();
  EXPECT_STREQ(result.dtype, "bf16");
  EXPECT_EQ(result.type.code, kDLBfloat);
  EXPECT_EQ(result.ndim, 2);
  EXPECT_EQ(result.shape[0], 2);
  EXPECT_EQ(result.shape[1], 4);
  EXPECT_EQ(result.shared_input, -1);
  ASSERT_EQ(call({&x.dl}, &y16), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(out, std::vector<std::uint16_t>(8, 0x3f80));
  EXPECT_EQ(bound(), 3u);
}

TEST_F(GetOp, TheSameShapeHasTheSameKernelWhateverCameBefore) {
  const std::vector<std::int64_t> sizes{1, 2, 31, 32, 33, 64, 100};
  const auto kernels = [&](bool backwards) {
    std::vector<std::string> list;
    cermet_handle* own = nullptr;
    cermet_callable* linear = nullptr;
    EXPECT_EQ(cermet_create("cpu", 1, &own), CERMET_OK);
    for (std::size_t i = 0; i < sizes.size() * sizes.size(); ++i) {
      const std::size_t n = backwards ? sizes.size() * sizes.size() - 1 - i : i;
      const std::int64_t rows_of_x = sizes[n % sizes.size()],
                         rows_of_w = sizes[n / sizes.size()];  // equal ones among them
      Floats a = rows({rows_of_x, 16}), b = rows({rows_of_w, 16});
      const DLTensor* in[] = {at(a), at(b)};
      if (!linear) {
        EXPECT_EQ(cermet_get_op(own, "linear", in, 2, nullptr, 0, nullptr, &linear), CERMET_OK)
            << cermet_last_error_message();
      }
      cermet_call_result result{};
      EXPECT_EQ(cermet_call_output(linear, in, 2, 0, &result), CERMET_OK) << cermet_last_error_message();
      list.push_back(std::to_string(n) + cermet_callable_kernel(linear) + cermet_callable_config(linear));
    }
    cermet_callable_destroy(linear);
    cermet_destroy(own);
    std::sort(list.begin(), list.end());
    return list;
  };
  EXPECT_EQ(kernels(false), kernels(true));
}

TEST_F(GetOp, ShapesThatKeepChangingTakeBoundedMemory) {
  ASSERT_EQ(get("rms_norm", {at(x), at(w)}), CERMET_OK);
  for (std::int64_t k = 1; k <= 600; ++k) {
    Floats row = rows({1, k}), y = like(row);
    ASSERT_EQ(call({at(row)}, at(y)), CERMET_OK) << k << ": " << cermet_last_error_message();
    ASSERT_NEAR(y.memory[static_cast<std::size_t>(k - 1)], 1, 1e-5) << k;
  }
  EXPECT_EQ(bound(), 512u);
  expect_norms({2, 4});
}

TEST_F(GetOp, HotCallsAllocateNothing) {
  Floats wide = rows({7, 4}), few = rows({2, 4});
  ASSERT_EQ(get("rms_norm", {at(x), at(w)}), CERMET_OK);
  const auto calls = [&] {
    for (Floats* rows_of : {&wide, &few}) {
      DLTensor* in = at(*rows_of);
      const DLTensor* list[] = {in, at(w)};
      cermet_call_result result{};
      ASSERT_EQ(cermet_call_output(callable, list, 2, 0, &result), CERMET_OK);
      ASSERT_EQ(cermet_call(callable, list, 2, &in, 1, nullptr), CERMET_OK) << cermet_last_error_message();
    }
  };
  calls();
  const std::int64_t before = heap::allocations();
  for (int i = 0; i < 100; ++i) calls();
  EXPECT_EQ(heap::allocations(), before);
}

TEST_F(GetOp, ThreadsHaveCallablesOfTheirOwn) {
  const auto work = [&](int thread) {
    for (int round = 0; round < 20; ++round) {
      Floats a = rows({1 + thread, 4}), b = w;
      const DLTensor* in[] = {at(a), at(b)};
      cermet_callable* mine = nullptr;
      ASSERT_EQ(cermet_get_op(handle, "rms_norm", in, 2, nullptr, 0, nullptr, &mine), CERMET_OK)
          << cermet_last_error_message();
      for (std::int64_t m = 1; m <= 40; ++m) {
        Floats rows_of = rows({m, 4}), y = like(rows_of);
        in[0] = at(rows_of);
        DLTensor* out = at(y);
        ASSERT_EQ(cermet_call(mine, in, 2, &out, 1, nullptr), CERMET_OK) << cermet_last_error_message();
        for (std::size_t i = 0; i < y.memory.size(); ++i) ASSERT_NEAR(y.memory[i], w.memory[i % 4], 1e-5) << i;
      }
      cermet_callable_destroy(mine);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

TEST_F(GetOp, OutlivesItsHandle) {
  ASSERT_EQ(get("rms_norm", {at(x), at(w)}), CERMET_OK);
  cermet_destroy(handle);
  handle = nullptr;
  expect_norms({2, 4});
  expect_norms({30, 4});
}

TEST_F(GetOp, NullDeviceChecksAndComputesNothing) {
  cermet_destroy(handle);
  ASSERT_EQ(cermet_create("null", 1, &handle), CERMET_OK);
  ASSERT_EQ(get("rms_norm", {at(x), at(w)}), CERMET_OK) << cermet_last_error_message();
  Floats y = like(x), three = rows({3});
  ASSERT_EQ(call({at(x), at(w)}, at(y)), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, std::vector<float>(8, -1));
  expect_refused(call({at(x), at(three)}, at(y)), {"rms_norm", "(weight)"});
}

#ifdef CERMET_HAS_CUDA_PLUGIN
TEST_F(GetOp, NullGpuChoosesAndCompilesOnceForARange) {
  cermet_destroy(handle);
  ASSERT_EQ(cermet_create("null:sm_90", 1, &handle), CERMET_OK) << cermet_last_error_message();
  w.dl.device = {kDLCUDA, 0};
  const auto run = [&](std::int64_t m) {
    Floats gpu = rows({m, 4}), y = like(gpu);
    gpu.dl.device = y.dl.device = {kDLCUDA, 0};
    ASSERT_EQ(callable ? CERMET_OK : get("rms_norm", {at(gpu), at(w)}), CERMET_OK) << cermet_last_error_message();
    ASSERT_EQ(call({at(gpu), at(w)}, at(y)), CERMET_OK) << cermet_last_error_message();
    EXPECT_EQ(y.memory[0], -1) << "it computes nothing";
  };
  for (std::int64_t m = 65; m <= 128; ++m) run(m);
  EXPECT_EQ(bound(), 1u);
  Floats host = rows({70, 4}), y = like(host);
  expect_refused(call({at(host), at(w)}, at(y)), {"rms_norm", "input 0 (x)", "cuda:0 (kDLCUDA)", "the host (kDLCPU)"});
}
#endif

}  // namespace
}  // namespace cermet::test
