// Products beyond the conformance cases: bits that do not depend on how work is cut, layouts, and runs of every size
// below a bound maximum.
#include <gtest/gtest.h>

#include <cstring>

#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

CaseOperand rows_of(DType dtype, std::int64_t m, std::int64_t k) { return {{dtype, {m, k}}}; }
CaseOperand weight_of(DType dtype, Dims dims) { return {{dtype, std::move(dims)}, {}, 0, true}; }

TensorView row_range(const TensorView& view, std::int64_t first, std::int64_t count) {
  TensorView part = view;
  part.data = view.as<std::byte>() + first * view.strides[0] * byte_size(view.dtype);
  part.shape[0] = count;
  return part;
}

/// Runs a case with its first operand cut to rows [first, first + count), by the kernel that is selected, and returns
/// the result.
OwnedTensor run_rows(const CaseData& data, std::int64_t first, std::int64_t count, ThreadPool& pool) {
  std::vector<std::optional<TensorType>> types = data.problem.inputs;
  types[0]->dims[0] = count;
  Problem problem = make_problem(definition(data.problem), types, data.problem.attributes);
  problem.constant_inputs = data.problem.constant_inputs;
  BoundOp op(problem, select_kernel(problem), pool);
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    if (problem.is_constant(i)) op.prepack(i, data.inputs[i]);
  std::vector<TensorView> inputs = data.inputs;
  inputs[0] = row_range(data.inputs[0], first, count);
  OwnedTensor y(problem.outputs[0].dtype, bind(problem.outputs[0].dims, {}));
  op.run(inputs, std::span(&y.view, 1));
  return y;
}

void expect_same_rows(const Case& test_case, const char* name) {
  const CaseData data = make_case_data(*find_operator(name), test_case);
  const std::int64_t rows = data.inputs[0].shape[0];
  ThreadPool one(1), three(3);
  cpu::force_isa(std::min(cpu::Isa::avx512_bf16, cpu::supported_isas().back()));
  OwnedTensor all = run_rows(data, 0, rows, three);
  const std::size_t row_bytes = static_cast<std::size_t>(all.memory.size() / rows);
  const auto same = [&](const OwnedTensor& part, std::int64_t first, std::int64_t count) {
    return std::memcmp(part.memory.data(), all.memory.data() + static_cast<std::size_t>(first) * row_bytes,
                       static_cast<std::size_t>(count) * row_bytes) == 0;
  };
  for (const cpu::Isa isa : cpu::supported_isas()) {
    if (isa < cpu::Isa::avx2) continue;  // no fused multiply-add
    cpu::force_isa(isa);
    if (isa == cpu::Isa::amx) all = run_rows(data, 0, rows, three);  // tiles sum in an order of their own
    for (std::int64_t count = 1; count <= rows; count += 4)
      for (std::int64_t first = 0; first + count <= rows; first += count)
        EXPECT_TRUE(same(run_rows(data, first, count, one), first, count))
            << name_of(isa) << ", rows " << first << " and " << count - 1 << " more";
  }
  cpu::force_isa(cpu::supported_isas().back());
}

TEST(Gemm, ARowOfLinearHasTheSameBitsInAnyCompany) {
  expect_same_rows({"bf16", {rows_of(DType::bf16, 33, 301), weight_of(DType::bf16, {70, 301})}, {{"out_dtype", "f32"}}},
                   "linear");
  expect_same_rows({"f32", {rows_of(DType::f32, 17, 301), weight_of(DType::f32, {70, 301})}}, "linear");
  expect_same_rows({"f16", {rows_of(DType::f32, 17, 301), weight_of(DType::f16, {70, 301})}}, "linear");
}

TEST(Gemm, ARowOfDualLinearHasTheSameSumsInAnyCompany) {
  expect_same_rows(
      {"bf16",
       {rows_of(DType::bf16, 17, 130), weight_of(DType::bf16, {40, 130}), weight_of(DType::bf16, {40, 130})},
       {{"activation", "relu"}}},
      "dual_linear");
}

/// Threads that take shares of the rows, and one thread.
TEST(Gemm, RowsInSharesHaveTheSameBits) {
  ThreadPool one(1), two(2), three(3);
  const auto expect_same = [&](const Case& test_case, const char* name) {
    const CaseData data = make_case_data(*find_operator(name), test_case);
    const std::int64_t rows = data.inputs[0].shape[0];
    const OwnedTensor alone = run_rows(data, 0, rows, one);
    for (ThreadPool* pool : {&two, &three}) {
      const OwnedTensor shared = run_rows(data, 0, rows, *pool);
      EXPECT_EQ(std::memcmp(shared.memory.data(), alone.memory.data(), static_cast<std::size_t>(alone.memory.size())),
                0)
          << rows << " rows, " << pool->size();
    }
  };
  for (const std::int64_t rows : {112, 197, 397, 1100}) {
    expect_same({"f32", {rows_of(DType::f32, rows, 301), weight_of(DType::f32, {700, 301})}}, "linear");
    expect_same({"slices", {rows_of(DType::f32, rows, 1301), weight_of(DType::f32, {70, 1301})}}, "linear");
    expect_same({"bf16", {rows_of(DType::bf16, rows, 301), weight_of(DType::bf16, {700, 301})}}, "linear");
    expect_same({"dual",
                 {rows_of(DType::f32, rows, 64), weight_of(DType::f32, {330, 64}), weight_of(DType::f32, {330, 64})},
                 {{"activation", "relu"}}},
                "dual_linear");
  }
}

TEST(Gemm, AKernelBoundForATokenRangeTakesEveryCountInIt) {
  constexpr std::int64_t most = 45, k = 66, n = 35;
  const CaseData data = make_case_data(
      *find_operator("linear"),
      {"range", {rows_of(DType::bf16, most, k), weight_of(DType::bf16, {n, k})}, {{"out_dtype", "f32"}}});
  ThreadPool pool(2);
  Problem problem =
      make_problem(definition(data.problem), {TensorType{DType::bf16, {Dim::symbol("T"), k}}, data.problem.inputs[1]},
                   {{"out_dtype", "f32"}});
  problem.constant_inputs = data.problem.constant_inputs;
  problem.maximum.set(Symbol("T"), most);
  const Kernel& kernel = *select_kernel(problem).kernel;
  const WeightLayout* layout = kernel.weight_layout(problem, 1);
  ASSERT_NE(layout, nullptr) << kernel.name;
  const AlignedBuffer packed(packed_bytes(*layout, *problem.inputs[1])),
      workspace(kernel.workspace(problem, pool.size()));
  pack_weight(*layout, data.inputs[1], packed.data(), pool);
  const Launcher launch = kernel.bind(problem);
  const OwnedTensor all = run_rows(data, 0, most, pool);
  for (std::int64_t m = 0; m <= most; ++m) {
    OwnedTensor y(DType::f32, {m, n});
    const TensorView inputs[] = {row_range(data.inputs[0], 0, m), TensorView(packed.data(), DType::bf16, {n, k}),
                                 TensorView()};
    launch({.inputs = inputs, .outputs = std::span(&y.view, 1), .workspace = workspace.data(), .pool = &pool});
    EXPECT_TRUE(m == 0 ||
                std::memcmp(y.memory.data(), all.memory.data(), static_cast<std::size_t>(y.memory.size())) == 0)
        << m << " rows";
  }
}

TEST(Gemm, GroupOffsetsAreChecked) {
  ThreadPool pool(1);
  for (const auto& [offsets, message] : std::vector<std::pair<std::vector<double>, std::string>>{
           {{1, 2, 4}, "grouped_linear: offsets: expected the first to be 0, found 1"},
           {{0, 3, 2}, "grouped_linear: offsets: expected rising numbers up to 4, found 2 at 2"},
           {{0, 9, 4}, "grouped_linear: offsets: expected rising numbers up to 4, found 9 at 1"},
           {{0, -1, 4}, "grouped_linear: offsets: expected rising numbers up to 4, found -1 at 1"},
           {{0, 2, 3}, "grouped_linear: offsets: expected the last to be 4 (rows of x), found 3"}})
    for (const bool constant : {true, false}) {
      CaseOperand w = weight_of(DType::f32, {2, 5, 8});
      w.constant = constant;
      const CaseData data =
          make_case_data(*find_operator("grouped_linear"),
                         {"bad", {rows_of(DType::f32, 4, 8), w, CaseOperand{{DType::i64, {3}}, values(offsets)}}});
      EXPECT_EQ(error_text([&] { run_rows(data, 0, 4, pool); }), message);
    }
}

TEST(Panels, Bf16AlternatesPairsOfStepsAndPadsWithZeros) {
  const CaseData data =
      make_case_data(*find_operator("linear"), {"pack", {rows_of(DType::bf16, 1, 5), weight_of(DType::bf16, {33, 5})}});
  ThreadPool pool(1);
  const WeightLayout& layout = *cpu::panel_layout(DType::bf16);
  const AlignedBuffer packed(packed_bytes(layout, *data.problem.inputs[1]));
  EXPECT_EQ(packed.size(), 2 * 3 * 32 * 2 * 2);
  pack_weight(layout, data.inputs[1], packed.data(), pool);
  const auto* const elements = reinterpret_cast<const std::uint16_t*>(packed.data());
  for (std::int64_t n = 0; n < 64; ++n)
    for (std::int64_t k = 0; k < 6; ++k) {
      const std::uint16_t expected =
          n < 33 && k < 5 ? data.inputs[1].as<const std::uint16_t>()[n * 5 + k] : std::uint16_t{0};
      EXPECT_EQ(elements[((n / 32 * 3 + k / 2) * 32 + n % 32) * 2 + k % 2], expected)
          << "column " << n << ", step " << k;
    }
}

TEST(Panels, Int8HasSumsOfItsColumns) {
  const CaseData data = make_case_data(
      *find_operator("scaled_mm"),
      {"pack",
       {{{{DType::i8, {1, 130}}, integers(-128, 127)}}, {{{DType::i8, {3, 130}}, integers(-128, 127), 0, true}}}});
  ThreadPool pool(1);
  const WeightLayout& layout = *cpu::panel_layout(DType::i8);
  const AlignedBuffer packed(packed_bytes(layout, *data.problem.inputs[1]));
  pack_weight(layout, data.inputs[1], packed.data(), pool);
  const auto* const sums =
      reinterpret_cast<const std::int32_t*>(packed.data() + cpu::panel_element_bytes(DType::i8, 130));
  for (std::int64_t n = 0; n < 4; ++n) {
    std::int32_t blocks[2] = {0, 0};
    for (std::int64_t k = 0; n < 3 && k < 130; ++k)
      blocks[k / 128] += data.inputs[1].as<const std::int8_t>()[n * 130 + k];
    EXPECT_EQ(sums[n], blocks[0] + blocks[1]);
    EXPECT_EQ(sums[32 + n], blocks[0]);
    EXPECT_EQ(sums[64 + n], blocks[1]);
  }
}

TEST(Limits, RatesThatTheInstructionSetHasArePositive) {
  ThreadPool pool(1);
  for (const cpu::Isa isa : {cpu::supported_isas().front(), cpu::supported_isas().back()}) {
    cpu::force_isa(isa);
    const cpu::Limits limits = cpu::measure_limits(
        pool, 0.001, 8 << 20);  // that there are rates: under a sanitizer on a busy machine they are low
    EXPECT_GT(limits.read_bytes_per_second, 1e6) << name_of(isa);
    EXPECT_GT(limits.f32_flops, 1e6) << name_of(isa);
    EXPECT_EQ(limits.int8_ops > 0, isa >= cpu::Isa::avx512_vnni) << name_of(isa);
    EXPECT_EQ(limits.bf16_flops > 0, isa >= cpu::Isa::avx512_bf16) << name_of(isa);
  }
}

}  // namespace
}  // namespace cermet
