// The C interface's short forms: cermet/ops.h, runs on addresses, devices, the log; and counts that are wrong, which
// are refused before what they count is read.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/log_sink.hpp"
#include "cermet/ops.h"
#include "tests/api/refusal.hpp"

namespace cermet::test {
namespace {

constexpr std::int64_t two_by_four[]{2, 4};

/// rms_norm(x[2, 4], weight[4]).
class Pointers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
    args.x = cermet_tensor("f32", 2, two_by_four);
    args.weight = cermet_tensor("f32", 1, two_by_four + 1);
    args.eps = 0;
  }
  void TearDown() override {
    cermet_op_destroy(op);
    cermet_destroy(handle);
  }
  cermet_status run() { return cermet_op_run_pointers(op, inputs, 2, outputs, 1, nullptr, 0, nullptr); }

  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  cermet_rms_norm_args args = cermet_rms_norm_defaults();
  float x[8]{1, 1, 1, 1, 2, 2, 2, 2}, w[4]{1, 2, 3, 4}, y[8]{};
  const void* inputs[2]{x, w};
  void* outputs[1]{y};
};

TEST_F(Pointers, RunLikeTensors) {
  ASSERT_EQ(cermet_rms_norm_create(handle, &args, &op), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], w[i % 4]);
  float other[8]{};
  outputs[0] = other;
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(other[7], 4);
}

TEST_F(Pointers, FollowADescriptorsStrides) {
  const std::int64_t columns[]{1, 2}, eight[]{16, 1};
  float wide[24]{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3};
  args.x.strides = eight;
  ASSERT_EQ(cermet_rms_norm_create(handle, &args, &op), CERMET_OK) << cermet_last_error_message();
  inputs[0] = wide;
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y[7], 4);
  static_cast<void>(columns);
}

TEST_F(Pointers, AreChecked) {
  ASSERT_EQ(cermet_rms_norm_create(handle, &args, &op), CERMET_OK);
  inputs[0] = nullptr;
  expect_refused(run(), {"rms_norm: input 0 (x)", "expected a tensor, found none"});
  inputs[0] = reinterpret_cast<const char*>(x) + 1;
  expect_refused(run(), {"rms_norm: input 0 (x)", "aligned"});
  inputs[0] = x;
  outputs[0] = w;
  expect_refused(run(), {"rms_norm: output 0 (y)", "memory of its own"});
  outputs[0] = nullptr;
  EXPECT_NE(run(), CERMET_OK);
  expect_refused(cermet_op_run_pointers(op, inputs, 3, outputs, 1, nullptr, 0, nullptr),
                 {"expected at most 2 inputs, found 3"});
  expect_refused(cermet_op_run_pointers(op, inputs, 2, outputs, 2, nullptr, 0, nullptr),
                 {"expected 1 outputs, found 2"});
}

TEST_F(Pointers, WantKnownSizes) {
  const std::int64_t open[]{CERMET_DIM('M'), 4};
  const cermet_range rows{'M', 16};
  args.x.shape = open;
  args.ranges = &rows;
  args.range_count = 1;
  ASSERT_EQ(cermet_rms_norm_create(handle, &args, &op), CERMET_OK) << cermet_last_error_message();
  expect_refused(run(), {"rms_norm", "without ranges", "cermet_op_run takes tensors with shapes"});
}

TEST_F(Pointers, SkipConstantsAndWhatIsNotGiven) {
  args.weight = cermet_constant("f32", 1, two_by_four + 1);
  ASSERT_EQ(cermet_rms_norm_create(handle, &args, &op), CERMET_OK) << cermet_last_error_message();
  DLTensor weight{w, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, const_cast<std::int64_t*>(two_by_four + 1), nullptr, 0};
  ASSERT_EQ(cermet_op_set_constant(op, CERMET_RMS_NORM_WEIGHT, &weight), CERMET_OK) << cermet_last_error_message();
  inputs[1] = nullptr;
  ASSERT_EQ(run(), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y[3], 4);
}

TEST(TypedCreation, PassesAttributesOfEveryKind) {
  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  cermet_cast_args cast = cermet_cast_defaults();
  cast.x = cermet_tensor("f32", 2, two_by_four);
  cast.out_dtype = "bf16";
  ASSERT_EQ(cermet_cast_create(handle, &cast, &op), CERMET_OK) << cermet_last_error_message();
  cermet_descriptor result{};
  ASSERT_EQ(cermet_op_output(op, 0, &result), CERMET_OK);
  EXPECT_STREQ(result.dtype, "bf16");
  cermet_op_destroy(op);
  const std::int64_t order[]{1, 0};
  cermet_transpose_args transpose = cermet_transpose_defaults();
  transpose.x = cermet_tensor("f32", 2, two_by_four);
  transpose.permutation = order;
  transpose.permutation_count = 2;
  ASSERT_EQ(cermet_transpose_create(handle, &transpose, &op), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(cermet_op_output(op, 0, &result), CERMET_OK);
  EXPECT_EQ(result.shape[0], 4);
  cermet_op_destroy(op);
  const cermet_descriptor parts[]{cermet_tensor("f32", 2, two_by_four), cermet_tensor("f32", 2, two_by_four),
                                  cermet_tensor("f32", 2, two_by_four)};
  cermet_concat_args concat = cermet_concat_defaults();
  concat.x = parts;
  concat.x_count = 3;
  ASSERT_EQ(cermet_concat_create(handle, &concat, &op), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(cermet_op_output(op, 0, &result), CERMET_OK);
  EXPECT_EQ(result.shape[0], 6);
  cermet_op_destroy(op);
  cermet_destroy(handle);
}

/// `count` elements of T at the end of a page, after which nothing may be read.
template <class T>
class BeforeGuardPage {
 public:
  explicit BeforeGuardPage(std::vector<T> values)
      : pages_(static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        first_(reinterpret_cast<T*>(pages_ + page - values.size() * sizeof(T))) {
    std::copy(values.begin(), values.end(), first_);
    EXPECT_EQ(mprotect(pages_ + page, page, PROT_NONE), 0);
  }
  ~BeforeGuardPage() { munmap(pages_, 2 * page); }
  BeforeGuardPage(const BeforeGuardPage&) = delete;
  BeforeGuardPage& operator=(const BeforeGuardPage&) = delete;
  T* get() const { return first_; }

 private:
  static constexpr std::size_t page = 65536;
  char* pages_;
  T* first_;
};

TEST(Counts, AreComparedBeforeWhatTheyCountIsRead) {
  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  cermet_callable* callable = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  const BeforeGuardPage<cermet_descriptor> inputs({cermet_tensor("f32", 2, two_by_four)});
  expect_refused(cermet_op_create(handle, "softmax", inputs.get(), 1000, nullptr, 0, &op),
                 {"softmax: expected at most 1 operands, found 1000"});
  expect_refused(cermet_op_create(handle, "concat", inputs.get(), 1000, nullptr, 0, &op),
                 {"concat: expected at most 64 operands, found 1000"});
  const BeforeGuardPage<cermet_attribute> attributes({cermet_attr_int("axis", 0)});
  expect_refused(cermet_op_create(handle, "softmax", inputs.get(), 1, attributes.get(), 1000, &op),
                 {"softmax: expected at most", "attributes, found 1000"});
  const BeforeGuardPage<cermet_range> ranges({{'M', 4}});
  expect_refused(cermet_op_create_ranged(handle, "softmax", inputs.get(), 1, nullptr, 0, ranges.get(), 1000, &op),
                 {"softmax: expected at most 26 ranges, found 1000"});
  const BeforeGuardPage<const DLTensor*> tensors({nullptr});
  expect_refused(cermet_get_op(handle, "softmax", tensors.get(), 1000, nullptr, 0, nullptr, &callable),
                 {"softmax: expected at most 64 inputs, found 1000"});
  cermet_destroy(handle);
}

TEST(Counts, OfElementsAreNamedWhereTheyOverflow) {
  cermet_handle* handle = nullptr;
  cermet_op* op = nullptr;
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  const std::int64_t huge[]{std::int64_t{1} << 40, std::int64_t{1} << 40};
  const cermet_descriptor x = cermet_tensor("f32", 2, huge);
  expect_refused(cermet_op_create(handle, "softmax", &x, 1, nullptr, 0, &op), {"softmax", "operand 0", "2^63"});
  cermet_destroy(handle);
}

TEST(DeviceNames, AreThoseThatHandlesTake) {
  ASSERT_GE(cermet_device_count(), 1u);
  EXPECT_STREQ(cermet_device_name(0), "cpu");
  for (std::size_t i = 0; i < cermet_device_count(); ++i) {
    cermet_handle* handle = nullptr;
    EXPECT_EQ(cermet_create(cermet_device_name(i), 1, &handle), CERMET_OK) << cermet_device_name(i);
    cermet_destroy(handle);
  }
  EXPECT_EQ(cermet_device_name(cermet_device_count()), nullptr);
  EXPECT_EQ(*cermet_no_cuda() == '\0', cermet_device_count() > 1);
}

TEST(LogSink, TakesMessagesOfItsLevel) {
  std::vector<std::string> seen;
  set_log_sink([&](LogLevel, const char* message) { seen.emplace_back(message); }, LogLevel::warn);
  log().info("{}", "quiet");
  log().warn("{} of {}", 1, 2);
  set_log_sink({}, LogLevel::warn);
  log().debug("after");
  EXPECT_EQ(seen, std::vector<std::string>{"1 of 2"});
}

}  // namespace
}  // namespace cermet::test
