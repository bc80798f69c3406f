// Weights that operators share: one copy in memory, and errors.
#include <gtest/gtest.h>

#include <unistd.h>
#include <fstream>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"

namespace cermet::test {
namespace {

/// Bytes of this process that are in memory.
std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Op {
  cermet_op* op = nullptr;
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  ~Op() { cermet_op_destroy(op); }
};

class SharedWeight : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK) << cermet_last_error_message(); }
  void TearDown() override {
    cermet_weight_destroy(weight);
    cermet_destroy(handle);
  }
  /// linear(x[rows, k], w[n, k]), where w is a constant; -'M' is a row count of up to 64.
  cermet_status create(Op& made, std::int64_t rows, std::int64_t k, std::int64_t n, const char* dtype = "f32") {
    const std::int64_t x_shape[] = {rows, k}, w_shape[] = {n, k};
    const cermet_descriptor inputs[] = {{dtype, 2, x_shape, nullptr, 0}, {dtype, 2, w_shape, nullptr, 1}};
    const cermet_range range{'M', 64};
    return cermet_op_create_ranged(handle, "linear", inputs, 2, nullptr, 0, &range, rows < 0 ? 1 : 0, &made.op);
  }
  std::vector<float> run(const Op& op, Floats x, std::int64_t n) {
    x.dl.data = x.memory.data();
    Floats y{{x.shape[0], n}, std::vector<float>(static_cast<std::size_t>(x.shape[0] * n), -1)};
    const DLTensor* in[] = {x.get(), nullptr};
    DLTensor* out[] = {y.get()};
    EXPECT_EQ(cermet_op_run(op.op, in, 2, out, 1, nullptr, 0, nullptr), CERMET_OK) << cermet_last_error_message();
    return y.memory;
  }

  cermet_handle* handle = nullptr;
  cermet_weight* weight = nullptr;
  Floats w{{3, 2}, {1, 0, 0, 1, 1, 1}};
};

TEST_F(SharedWeight, OneCopyServesOperatorsOfEveryRowCount) {
  constexpr std::int64_t n = 4096, k = 4096, bytes = n * k * 4;
  Floats large{{n, k}, std::vector<float>(n * k, 0.5f)};
  ASSERT_EQ(cermet_weight_create(handle, large.get(), nullptr, &weight), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_weight_bytes(weight), 0u) << "no copy was requested yet";
  Op ops[4];
  const std::int64_t rows[] = {1, 16, 64, CERMET_DIM('M')};
  std::int64_t before = resident_bytes();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(create(ops[i], rows[i], k, n), CERMET_OK) << cermet_last_error_message();
    ASSERT_EQ(cermet_op_set_weight(ops[i].op, 1, weight), CERMET_OK) << cermet_last_error_message();
    const std::int64_t after = resident_bytes();
    if (i == 0) {
      EXPECT_GT(after - before, bytes / 2) << "the first operator's copy";
    } else {
      EXPECT_LT(after - before, bytes / 8) << "operator " << i << " has a copy of its own";
    }
    before = after;
    EXPECT_EQ(cermet_weight_bytes(weight), static_cast<std::size_t>(bytes));
  }
  const Floats x{{1, k}, std::vector<float>(k, 0.25f)};
  EXPECT_EQ(run(ops[0], x, n), std::vector<float>(n, 512));
  EXPECT_EQ(run(ops[3], x, n), std::vector<float>(n, 512));
}

TEST_F(SharedWeight, OutlivesItsSourceAndItsHandle) {
  ASSERT_EQ(cermet_weight_create(handle, w.get(), "f32", &weight), CERMET_OK) << cermet_last_error_message();
  Op one, many;
  ASSERT_EQ(create(one, 1, 2, 3), CERMET_OK);
  ASSERT_EQ(cermet_op_set_weight(one.op, 1, weight), CERMET_OK) << cermet_last_error_message();
  cermet_weight_detach(weight);
  w.memory.assign(6, 100);
  ASSERT_EQ(create(many, CERMET_DIM('M'), 2, 3), CERMET_OK);
  ASSERT_EQ(cermet_op_set_weight(many.op, 1, weight), CERMET_OK)
      << "the layout is there: " << cermet_last_error_message();
  cermet_weight_destroy(weight);
  weight = nullptr;
  cermet_destroy(handle);
  handle = nullptr;
  EXPECT_EQ(run(one, {{1, 2}, {1, 10}}, 3), (std::vector<float>{1, 10, 11}));
  EXPECT_EQ(run(many, {{2, 2}, {1, 10, 2, 20}}, 3), (std::vector<float>{1, 10, 11, 2, 20, 22}));
}

TEST_F(SharedWeight, StridedTensorsAreTaken) {
  Floats wide{{3, 2}, {1, 0, 9, 0, 1, 9, 1, 1, 9}};
  wide.strides = {3, 1};
  ASSERT_EQ(cermet_weight_create(handle, wide.get(), nullptr, &weight), CERMET_OK) << cermet_last_error_message();
  Op op;
  ASSERT_EQ(create(op, 1, 2, 3), CERMET_OK);
  ASSERT_EQ(cermet_op_set_weight(op.op, 1, weight), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(run(op, {{1, 2}, {1, 10}}, 3), (std::vector<float>{1, 10, 11}));
}

TEST_F(SharedWeight, AConstantReplacesItForOneOperatorOnly) {
  ASSERT_EQ(cermet_weight_create(handle, w.get(), nullptr, &weight), CERMET_OK);
  Op first, second;
  for (Op* op : {&first, &second}) {
    ASSERT_EQ(create(*op, 1, 2, 3), CERMET_OK);
    ASSERT_EQ(cermet_op_set_weight(op->op, 1, weight), CERMET_OK) << cermet_last_error_message();
  }
  Floats other{{3, 2}, {2, 0, 0, 2, 2, 2}};
  ASSERT_EQ(cermet_op_set_constant(second.op, 1, other.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(run(first, {{1, 2}, {1, 10}}, 3), (std::vector<float>{1, 10, 11}));
  EXPECT_EQ(run(second, {{1, 2}, {1, 10}}, 3), (std::vector<float>{2, 20, 22}));
}

TEST_F(SharedWeight, MistakesAreNamed) {
  Op op, halves;
  ASSERT_EQ(create(op, 1, 2, 3), CERMET_OK);
  ASSERT_EQ(cermet_weight_create(handle, w.get(), nullptr, &weight), CERMET_OK);
  expect_refused(cermet_op_set_weight(op.op, 0, weight), {"linear", "input 0", "constant"});
  expect_refused(cermet_op_set_weight(op.op, 1, nullptr), {"weight", "NULL"});
  expect_refused(cermet_op_set_weight(nullptr, 1, weight), {"op", "NULL"});
  ASSERT_EQ(create(halves, 1, 2, 3, "bf16"), CERMET_OK);
  expect_refused(cermet_op_set_weight(halves.op, 1, weight), {"linear", "input 1 (w)", "bf16[3, 2]", "f32[3, 2]"});
  cermet_weight_detach(weight);
  expect_refused(cermet_op_set_weight(op.op, 1, weight), {"weight f32[3, 2]", "panels.f32", "detached"});
  cermet_handle* other = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &other), CERMET_OK);
  cermet_weight* foreign = nullptr;
  ASSERT_EQ(cermet_weight_create(other, w.get(), nullptr, &foreign), CERMET_OK);
  expect_refused(cermet_op_set_weight(op.op, 1, foreign), {"input 1 (w)", "handle", "another"});
  cermet_weight_destroy(foreign);
  foreign = nullptr;
  expect_refused(cermet_weight_create(nullptr, w.get(), nullptr, &foreign), {"handle", "NULL"});
  expect_refused(cermet_weight_create(other, nullptr, nullptr, &foreign), {"tensor", "NULL"});
  expect_refused(cermet_weight_create(other, w.get(), nullptr, nullptr), {"weight", "NULL"});
  expect_refused(cermet_weight_create(other, w.get(), "f31", &foreign), {"weight", "dtype", "\"f31\""});
  expect_refused(cermet_weight_create(other, w.get(), "bf16", &foreign), {"weight", "bf16", "f32"});
  w.dl.device = {kDLCUDA, 1};
  expect_refused(cermet_weight_create(other, w.get(), nullptr, &foreign),
                 {"weight", "memory of the host (kDLCPU)", "cuda:1 (kDLCUDA)"});
  w.dl.device = {kDLCPU, 0};
  w.shape = {-3, 2};
  expect_refused(cermet_weight_create(other, w.get(), nullptr, &foreign), {"weight", "non-negative", "[-3, 2]"});
  w.shape = std::vector<std::int64_t>(9, 1);
  expect_refused(cermet_weight_create(other, w.get(), nullptr, &foreign), {"weight", "0 to 8 dimensions", "9"});
  EXPECT_EQ(foreign, nullptr);
  EXPECT_EQ(cermet_weight_bytes(nullptr), 0u);
  cermet_weight_destroy(nullptr);
  cermet_weight_detach(nullptr);
  cermet_destroy(other);
}

}  // namespace
}  // namespace cermet::test
