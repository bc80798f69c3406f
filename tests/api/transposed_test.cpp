// Products whose matrices come transposed, as torch._scaled_mm, vLLM and InfiniOP pass b, and results and caches that
// interleave in one allocation.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/api/refusal.hpp"
#include "tests/api/tensors.hpp"

namespace cermet {
namespace {

using test::expect_refused;
using Sizes = std::vector<std::int64_t>;

/// A tensor over memory that the test has.
struct Given {
  Sizes shape, strides;
  DLTensor dl{};
  Given(const Given& other) : Given(other.dl.data, other.dl.dtype, other.shape, other.strides) {}
  Given& operator=(const Given&) = delete;
  Given(void* data, DLDataType type, Sizes dims, Sizes steps = {}) : shape(std::move(dims)), strides(std::move(steps)) {
    dl = {data, {kDLCPU, 0},  static_cast<int>(shape.size()),
          type, shape.data(), strides.empty() ? nullptr : strides.data(),
          0};
  }
};

constexpr DLDataType i8{kDLInt, 8, 1}, i32{kDLInt, 32, 1}, f32{kDLFloat, 32, 1};

class Transposed : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cermet_create("cpu", 2, &handle_), CERMET_OK); }
  void TearDown() override {
    cermet_op_destroy(op_);
    cermet_callable_destroy(callable_);
    cermet_destroy(handle_);
  }
  cermet_status create(const char* name, std::vector<cermet_descriptor> inputs) {
    cermet_op_destroy(op_);
    op_ = nullptr;
    return cermet_op_create(handle_, name, inputs.data(), inputs.size(), nullptr, 0, &op_);
  }
  cermet_status run(const std::vector<const DLTensor*>& inputs, DLTensor* output) {
    return cermet_op_run(op_, inputs.data(), inputs.size(), &output, 1, nullptr, 0, nullptr);
  }
  cermet_status call(const char* name, const std::vector<const DLTensor*>& inputs,
                     const std::vector<DLTensor*>& outputs, std::uint64_t constants = 0) {
    cermet_callable_destroy(callable_);
    callable_ = nullptr;
    cermet_get_op_options options = cermet_get_op_defaults();
    options.constants = constants;
    if (const auto status =
            cermet_get_op(handle_, name, inputs.data(), inputs.size(), nullptr, 0, &options, &callable_);
        status != CERMET_OK)
      return status;
    std::vector<const DLTensor*> given = inputs;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (constants >> i & 1u) given[i] = nullptr;
    return cermet_call(callable_, given.data(), given.size(), outputs.data(), outputs.size(), nullptr);
  }

  cermet_handle* handle_ = nullptr;
  cermet_op* op_ = nullptr;
  cermet_callable* callable_ = nullptr;
};

/// scaled_mm of int8 with a scale for each row and column; b is [N, K] in memory.
struct Scaled {
  std::int64_t m, n, k;
  std::vector<std::int8_t> a, b;
  std::vector<float> a_scale, b_scale, y;

  Scaled(std::int64_t rows, std::int64_t columns, std::int64_t length) : m(rows), n(columns), k(length) {
    for (std::int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<std::int8_t>(i * 7 % 19 - 9));
    for (std::int64_t i = 0; i < n * k; ++i) b.push_back(static_cast<std::int8_t>(i * 5 % 23 - 11));
    for (std::int64_t i = 0; i < m; ++i) a_scale.push_back(static_cast<float>(i + 1) / 8);
    for (std::int64_t i = 0; i < n; ++i) b_scale.push_back(static_cast<float>(i + 1) / 16);
    y.resize(static_cast<std::size_t>(m * n));
  }
  std::vector<float> expected() const {
    std::vector<float> result;
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t c = 0; c < n; ++c) {
        int sum = 0;
        for (std::int64_t i = 0; i < k; ++i)
          sum += a[static_cast<std::size_t>(r * k + i)] * b[static_cast<std::size_t>(c * k + i)];
        result.push_back(a_scale[static_cast<std::size_t>(r)] *
                         (b_scale[static_cast<std::size_t>(c)] * static_cast<float>(sum)));
      }
    return result;
  }
};

TEST_F(Transposed, ScaledMmTakesItAsOthersHaveIt) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{5, 32, 64}, {5, 64, 64}, {1, 1, 64}, {3, 8, 1}, {1, 64, 64}}) {
    Scaled s(m, n, k);
    Given a(s.a.data(), i8, {m, k}), y(s.y.data(), f32, {m, n});
    const std::vector<Given> weights{{s.b.data(), i8, {n, k}}, {s.b.data(), i8, {k, n}, {1, k}}};
    const std::vector<Given> rows{{s.a_scale.data(), f32, {m}}, {s.a_scale.data(), f32, {m, 1}}};
    const std::vector<Given> columns{
        {s.b_scale.data(), f32, {n}}, {s.b_scale.data(), f32, {n, 1}}, {s.b_scale.data(), f32, {1, n}}};
    for (const Given& b : weights)
      for (const Given& a_scale : rows)
        for (const Given& b_scale : columns) {
          const auto descriptor = [](const Given& t, const char* dtype, int constant) {
            return cermet_descriptor{dtype, static_cast<std::int32_t>(t.shape.size()), t.shape.data(),
                                     t.strides.empty() ? nullptr : t.strides.data(), constant};
          };
          for (const int constant : {0, 1}) {
            ASSERT_EQ(create("scaled_mm", {descriptor(a, "i8", 0), descriptor(b, "i8", constant),
                                           descriptor(a_scale, "f32", 0), descriptor(b_scale, "f32", 0)}),
                      CERMET_OK)
                << cermet_last_error_message();
            if (constant) {
              ASSERT_EQ(cermet_op_set_constant(op_, 1, &b.dl), CERMET_OK) << cermet_last_error_message();
            }
            std::ranges::fill(s.y, -1.0f);
            ASSERT_EQ(run({&a.dl, constant ? nullptr : &b.dl, &a_scale.dl, &b_scale.dl}, &y.dl), CERMET_OK)
                << cermet_last_error_message();
            EXPECT_EQ(s.y, s.expected());
            std::ranges::fill(s.y, -1.0f);
            ASSERT_EQ(call("scaled_mm", {&a.dl, &b.dl, &a_scale.dl, &b_scale.dl}, {&y.dl}, constant ? 2 : 0), CERMET_OK)
                << cermet_last_error_message();
            EXPECT_EQ(s.y, s.expected());
          }
        }
  }
}

TEST_F(Transposed, ScaledMmNamesItsOperandsAndSaysWhatItTakes) {
  Scaled s(5, 32, 64);
  Given a(s.a.data(), i8, {5, 64}), y(s.y.data(), f32, {5, 32}), flat(s.b.data(), i8, {64, 32}),
      shorter(s.b.data(), i8, {48, 32}, {1, 48});
  expect_refused(call("scaled_mm", {&a.dl, &flat.dl}, {&y.dl}),
                 {"operand 1 (b)", "[N, 64] (K of a), or the transpose of that: [64, N] with strides [1, 64]"});
  expect_refused(call("scaled_mm", {&a.dl, &shorter.dl}, {&y.dl}),
                 {"operand 1 (b)", "64 (K of a)", "b was given transposed, as [48, 32]"});
  Given blocks(s.b_scale.data(), f32, {1, 2});
  expect_refused(call("scaled_mm", {&a.dl, &flat.dl, nullptr, &blocks.dl}, {&y.dl}), {"operand 1 (b)"});
}

/// [1, N] may be a scale for each column or, of a long reduction, one for each block of it: the scales of a say which.
TEST_F(Transposed, ScalesThatMayBeBlocksAreAskedAbout) {
  Scaled s(2, 2, 256);
  Given a(s.a.data(), i8, {2, 256}), b(s.b.data(), i8, {2, 256}), y(s.y.data(), f32, {2, 2}),
      b_scale(s.b_scale.data(), f32, {1, 2});
  Given rows(s.a_scale.data(), f32, {2, 1});
  expect_refused(call("scaled_mm", {&a.dl, &b.dl, &rows.dl, &b_scale.dl}, {&y.dl}),
                 {"operand 3 (b_scale)", "expected [2], or block scales of a"});
  std::vector<float> blocks(4, 1);
  Given a_blocks(blocks.data(), f32, {2, 2});
  EXPECT_EQ(call("scaled_mm", {&a.dl, &b.dl, &a_blocks.dl, &b_scale.dl}, {&y.dl}), CERMET_OK)
      << cermet_last_error_message();
}

/// Scales of blocks as CUTLASS and DeepGEMM want them: by columns.
TEST_F(Transposed, BlockScalesMayLieByColumns) {
  Scaled s(5, 130, 300);
  const auto value = [](std::int64_t row, std::int64_t block) { return static_cast<float>(row * 3 + block + 1) / 16; };
  std::vector<float> a_rows(15), a_columns(15), b_rows(6), b_columns(6), expected(s.y.size());
  for (std::int64_t block = 0; block < 3; ++block) {
    for (std::int64_t r = 0; r < 5; ++r)
      a_rows[static_cast<std::size_t>(r * 3 + block)] = a_columns[static_cast<std::size_t>(block * 5 + r)] =
          value(r, block);
    for (std::int64_t r = 0; r < 2; ++r)
      b_rows[static_cast<std::size_t>(r * 3 + block)] = b_columns[static_cast<std::size_t>(block * 2 + r)] =
          value(r + 7, block);
  }
  Given a(s.a.data(), i8, {5, 300}), b(s.b.data(), i8, {130, 300}), y(s.y.data(), f32, {5, 130}),
      wanted(expected.data(), f32, {5, 130});
  Given a_dense(a_rows.data(), f32, {5, 3}), b_dense(b_rows.data(), f32, {2, 3}),
      a_scale(a_columns.data(), f32, {5, 3}, {1, 5}), b_scale(b_columns.data(), f32, {2, 3}, {1, 2});
  ASSERT_EQ(call("scaled_mm", {&a.dl, &b.dl, &a_dense.dl, &b_dense.dl}, {&wanted.dl}), CERMET_OK)
      << cermet_last_error_message();
  EXPECT_NE(expected, std::vector<float>(expected.size()));
  for (const std::uint64_t constants : {0u, 2u, 10u}) {
    std::ranges::fill(s.y, -1.0f);
    ASSERT_EQ(call("scaled_mm", {&a.dl, &b.dl, &a_scale.dl, &b_scale.dl}, {&y.dl}, constants), CERMET_OK)
        << cermet_last_error_message();
    EXPECT_EQ(s.y, expected) << constants;
  }
  const auto descriptor = [](const Given& t, const char* dtype) {
    return cermet_descriptor{dtype, 2, t.shape.data(), t.strides.empty() ? nullptr : t.strides.data(), 0};
  };
  ASSERT_EQ(create("scaled_mm",
                   {descriptor(a, "i8"), descriptor(b, "i8"), descriptor(a_scale, "f32"), descriptor(b_scale, "f32")}),
            CERMET_OK)
      << cermet_last_error_message();
  std::ranges::fill(s.y, -1.0f);
  ASSERT_EQ(run({&a.dl, &b.dl, &a_scale.dl, &b_scale.dl}, &y.dl), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(s.y, expected);
  std::vector<float> many(260, 1);  // a scale for each column lies densely
  Given apart(many.data(), f32, {130}, {2});
  expect_refused(call("scaled_mm", {&a.dl, &b.dl, nullptr, &apart.dl}, {&y.dl}),
                 {"input 3 (b_scale)", "contiguous trailing dimensions"});
}

TEST_F(Transposed, MatmulTakesEitherOperand) {
  std::vector<float> a(15), b(20), y(12), expected(12);
  std::iota(a.begin(), a.end(), 1.0f);
  std::iota(b.begin(), b.end(), -4.0f);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 4; ++c)
      for (std::size_t k = 0; k < 5; ++k) expected[r * 4 + c] += a[k * 3 + r] * b[c * 5 + k];
  Given left(a.data(), f32, {3, 5}, {1, 3}), right(b.data(), f32, {5, 4}, {1, 5}), result(y.data(), f32, {3, 4});
  for (const std::uint64_t constants : {0u, 2u}) {
    std::ranges::fill(y, -1.0f);
    ASSERT_EQ(call("matmul", {&left.dl, &right.dl}, {&result.dl}, constants), CERMET_OK) << cermet_last_error_message();
    EXPECT_EQ(y, expected);
  }
  const auto descriptor = [](const Given& t) {
    return cermet_descriptor{"f32", 2, t.shape.data(), t.strides.data(), 0};
  };
  ASSERT_EQ(create("matmul", {descriptor(left), descriptor(right)}), CERMET_OK) << cermet_last_error_message();
  std::ranges::fill(y, -1.0f);
  ASSERT_EQ(run({&left.dl, &right.dl}, &result.dl), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(y, expected);
  Given wrong(b.data(), f32, {4, 5}, {1, 4});
  expect_refused(call("matmul", {&left.dl, &wrong.dl}, {&result.dl}),
                 {"operand 1 (b): expected dimension -2 to be 5 (K of a), found f32[4, 5]"});
}

TEST_F(Transposed, CachesMayInterleaveInOneAllocation) {
  std::vector<float> caches(2 * 2 * 8 * 4), k(4, 1), v(4, 2);  // [blocks, k or v, heads, block, D]
  std::int32_t slot = 13;
  const Sizes shape{2, 1, 8, 4}, strides{64, 32, 4, 1};
  Given keys(k.data(), f32, {1, 1, 4}), values(v.data(), f32, {1, 1, 4}), slots(&slot, i32, {1});
  Given k_cache(caches.data(), f32, shape, strides), v_cache(caches.data() + 32, f32, shape, strides);
  const std::vector<const DLTensor*> inputs{&keys.dl, &values.dl, &k_cache.dl, &v_cache.dl, &slots.dl};
  ASSERT_EQ(call("kv_cache_write", inputs, {&k_cache.dl, &v_cache.dl}), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(std::vector<float>(caches.begin() + 84, caches.begin() + 88), k);
  EXPECT_EQ(std::vector<float>(caches.begin() + 116, caches.begin() + 120), v);
  EXPECT_EQ(std::accumulate(caches.begin(), caches.end(), 0.0f), 12);
  Given over(caches.data() + 28, f32, shape, strides);
  expect_refused(
      call("kv_cache_write", {&keys.dl, &values.dl, &k_cache.dl, &over.dl, &slots.dl}, {&k_cache.dl, &over.dl}),
      {"memory of its own"});
}

TEST_F(Transposed, ResultsMayHaveAnyDisjointStrides) {
  std::vector<float> x(8 * 20 * 4 * 64), y(x.size(), -1), dense(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
  const Sizes shape{8, 20, 4, 64}, strides{5120, 64, 1280, 1};
  Given in(x.data(), f32, shape), apart(y.data(), f32, shape, strides), plain(dense.data(), f32, shape);
  ASSERT_EQ(call("rms_norm", {&in.dl}, {&apart.dl}), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(call("rms_norm", {&in.dl}, {&plain.dl}), CERMET_OK);
  for (std::size_t b = 0, i = 0; b < 8; ++b)
    for (std::size_t t = 0; t < 20; ++t)
      for (std::size_t h = 0; h < 4; ++h)
        for (std::size_t e = 0; e < 64; ++e, ++i) ASSERT_EQ(y[b * 5120 + t * 64 + h * 1280 + e], dense[i]);
  Given folded(y.data(), f32, shape, {5120, 64, 1216, 1});
  expect_refused(call("rms_norm", {&in.dl}, {&folded.dl}), {"output 0 (y)", "strides that keep elements apart"});
}

}  // namespace
}  // namespace cermet
