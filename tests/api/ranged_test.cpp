// Operators whose leading dimension varies from run to run, and errors with ranges.
#include <gtest/gtest.h>

#include <string>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"

namespace cermet::test {
namespace {

/// linear(x[M, 4], w[3, 4]) with M up to 100.
class Ranged : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK) << cermet_last_error_message(); }
  void TearDown() override {
    cermet_op_destroy(op);
    cermet_destroy(handle);
  }
  cermet_status create(const char* name = "linear") {
    cermet_op_destroy(op);
    op = nullptr;
    return cermet_op_create_ranged(handle, name, inputs.data(), inputs.size(), nullptr, 0, ranges.data(), ranges.size(),
                                   &op);
  }
  cermet_status run(DLTensor* x, DLTensor* y) {
    const DLTensor* in[] = {x, w.get()};
    DLTensor* out[] = {y};
    return cermet_op_run(op, in, 2, out, 1, nullptr, 0, nullptr);
  }
  /// x with element [m, k] = m + k, whose products with the rows of w are sums of some of its columns.
  static Floats rows(std::int64_t m) {
    Floats x{{m, 4}, std::vector<float>(static_cast<std::size_t>(4 * m))};
    for (std::size_t i = 0; i < x.memory.size(); ++i) x.memory[i] = static_cast<float>(i / 4 + i % 4);
    return x;
  }

  std::vector<std::int64_t> x_shape{CERMET_DIM('M'), 4}, w_shape{3, 4};
  std::vector<cermet_descriptor> inputs{{"f32", 2, x_shape.data(), nullptr, 0}, {"f32", 2, w_shape.data(), nullptr, 0}};
  std::vector<cermet_range> ranges{{'M', 100}};
  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  Floats w{{3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1}};
};

TEST_F(Ranged, OneOperatorRunsForEveryRowCount) {
  for (const int constant : {0, 1}) {
    inputs[1].is_constant = constant;
    ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
    if (constant) {
      ASSERT_EQ(cermet_op_set_constant(op, 1, w.get()), CERMET_OK) << cermet_last_error_message();
    }
    for (const std::int64_t m : {7, 1, 0, 100, 32, 33, 2}) {
      Floats x = rows(m), y{{m, 3}, std::vector<float>(static_cast<std::size_t>(3 * m), -1)};
      x.dl.data = x.memory.data();
      const DLTensor* in[] = {x.get(), constant ? nullptr : w.get()};
      DLTensor* out[] = {y.get()};
      ASSERT_EQ(cermet_op_run(op, in, 2, out, 1, nullptr, 0, nullptr), CERMET_OK)
          << m << ": " << cermet_last_error_message();
      for (std::int64_t i = 0; i < m; ++i) {
        const auto at = static_cast<std::size_t>(3 * i);
        const auto first = static_cast<float>(i);
        EXPECT_EQ((std::vector<float>(y.memory.begin() + at, y.memory.begin() + at + 3)),
                  (std::vector<float>{first, first + 1, 4 * first + 6}))
            << m;
      }
    }
  }
}

TEST_F(Ranged, ResultsHaveTheShapeOfTheRun) {
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  cermet_descriptor most{};
  ASSERT_EQ(cermet_op_output(op, 0, &most), CERMET_OK);
  EXPECT_EQ(std::vector<std::int64_t>(most.shape, most.shape + most.ndim), (std::vector<std::int64_t>{100, 3}));
  Floats x = rows(7);
  const DLTensor* in[] = {x.get()};
  std::vector<std::int64_t> shape(2);
  ASSERT_EQ(cermet_op_output_shape(op, 0, in, 1, shape.data()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(shape, (std::vector<std::int64_t>{7, 3}));
  expect_refused(cermet_op_output_shape(op, 1, in, 1, shape.data()), {"output", "below 1", "found 1"});
  expect_refused(cermet_op_output_shape(op, 0, nullptr, 0, shape.data()), {"input 0 (x)", "found none"});
  expect_refused(cermet_op_output_shape(op, 0, in, 1, nullptr), {"shape", "NULL"});
}

TEST_F(Ranged, RunsRefuseWhatIsOutsideTheRange) {
  ASSERT_EQ(create(), CERMET_OK) << cermet_last_error_message();
  Floats x = rows(101), y{{101, 3}, std::vector<float>(303, -1)};
  expect_refused(run(x.get(), y.get()), {"linear", "input 0 (x)", "M of f32[M, 4] from 0 to 100", "found 101"});
  x.shape = {-1, 4};
  expect_refused(run(x.get(), y.get()), {"input 0 (x)", "from 0 to 100", "found -1"});
  x.shape = {7, 5};
  expect_refused(run(x.get(), y.get()), {"input 0 (x)", "f32[M, 4] with M = 7", "[7, 5]"});
  x.shape = {28};
  expect_refused(run(x.get(), y.get()), {"input 0 (x)", "f32[M, 4]", "1 dimensions"});
  x.shape = {7, 4};
  y.shape = {6, 3};
  expect_refused(run(x.get(), y.get()), {"output 0 (y)", "f32[M, 3] with M = 7", "[6, 3]"});
  expect_refused(run(nullptr, y.get()), {"input 0 (x)", "found none"});
  EXPECT_EQ(y.memory, std::vector<float>(303, -1)) << "a refused run wrote its result";
}

TEST_F(Ranged, OperandsAgreeOnASymbol) {
  w_shape = {CERMET_DIM('M'), 4};
  ASSERT_EQ(create("add"), CERMET_OK) << cermet_last_error_message();
  Floats x = rows(3), y = rows(3);
  x.dl.data = x.memory.data();
  y.dl.data = y.memory.data();
  ASSERT_EQ(run(x.get(), y.get()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y.memory, (std::vector<float>{1, 1, 2, 3, 1, 3, 3, 4, 3, 4, 5, 6}));
  w.shape = {4, 3};
  expect_refused(run(x.get(), y.get()), {"input 1 (b)", "f32[M, 4] with M = 3", "[4, 3]"});
}

TEST_F(Ranged, CreationNamesWhatIsWrong) {
  ranges = {};
  expect_refused(create(), {"linear", "input 0", "range", "dimension M", "none"});
  ranges = {{'M', 0}};
  expect_refused(create(), {"range M", "maximum of 1 to 2147483647", "found 0"});
  ranges = {{'M', std::int64_t{1} << 31}};
  expect_refused(create(), {"range M", "2147483648"});
  ranges = {{'m', 8}};
  expect_refused(create(), {"range 0", "'A' to 'Z'", "\"m\""});
  ranges = {{'M', 8}, {'M', 8}};
  expect_refused(create(), {"range M", "once", "twice"});
  ranges = {{'M', 8}, {'N', 8}};
  expect_refused(create(), {"range N", "operands", "none"});
  ranges = {{'M', 8}};
  inputs[0].is_constant = 1;
  expect_refused(create(), {"input 0", "known dimensions of a constant", "f32[M, 4]"});
  inputs[0].is_constant = 0;
  expect_refused(cermet_op_create_ranged(handle, "linear", inputs.data(), 2, nullptr, 0, nullptr, 1, &op),
                 {"ranges", "NULL"});
  expect_refused(cermet_op_create(handle, "linear", inputs.data(), 2, nullptr, 0, &op), {"range", "dimension M"});
  x_shape = {std::int64_t{1} << 40, CERMET_DIM('K')};
  ranges = {{'K', 1 << 30}};
  EXPECT_NE(create(), CERMET_OK);
  EXPECT_NE(std::string(cermet_last_error_message()), "");
  EXPECT_EQ(op, nullptr);
}

TEST_F(Ranged, ShapesThatARunMakesNegativeAreRefused) {
  const std::int64_t start[] = {2}, end[] = {INT64_MAX}, axes[] = {0};
  const cermet_attribute attributes[] = {{"starts", CERMET_INTS, 0, 0, nullptr, start, 1, nullptr, nullptr},
                                         {"ends", CERMET_INTS, 0, 0, nullptr, end, 1, nullptr, nullptr},
                                         {"axes", CERMET_INTS, 0, 0, nullptr, axes, 1, nullptr, nullptr}};
  ASSERT_EQ(cermet_op_create_ranged(handle, "slice", inputs.data(), 1, attributes, 3, ranges.data(), 1, &op), CERMET_OK)
      << cermet_last_error_message();
  Floats x = rows(1);
  const DLTensor* in[] = {x.get()};
  std::vector<std::int64_t> shape(2);
  expect_refused(cermet_op_output_shape(op, 0, in, 1, shape.data()), {"output 0", "M-2", "found -1"});
  x.shape = {5, 4};
  ASSERT_EQ(cermet_op_output_shape(op, 0, in, 1, shape.data()), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(shape, (std::vector<std::int64_t>{3, 4}));
}

}  // namespace
}  // namespace cermet::test
