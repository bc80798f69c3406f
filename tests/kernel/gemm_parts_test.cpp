// Float32 products of AMX tiles, whose operands are split into three bf16: their accuracy, their bits, and when they
// are taken.
#include "kernel/cpu/gemm/parts.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

const Kernel& parts_kernel() {
  for (const Kernel* kernel : cpu::all_kernels())
    if (kernel->name == "gemm.linear.parts") return *kernel;
  throw std::out_of_range("gemm.linear.parts");
}

/// Tests of it are skipped, with the reason, where it declines whatever the rows.
std::optional<std::string> no_parts() {
  if (cpu::supported_isas().back() != cpu::Isa::amx) return cpu::amx_missing().value_or("this build has no AVX-512");
  cpu::force_isa(cpu::Isa::amx);
  return cpu::parts_decline();
}

CaseData product_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return make_case_data(*find_operator("linear"),
                        {"parts", {CaseOperand{{DType::f32, {m, k}}}, CaseOperand{{DType::f32, {n, k}}, {}, 0, true}}});
}

OwnedTensor run_parts(const CaseData& data, ThreadPool& pool) {
  BoundOp op(data.problem, parts_kernel(), pool);
  op.prepack(1, data.inputs[1]);
  OwnedTensor y(DType::f32, bind(data.problem.outputs[0].dims, {}));
  op.run(data.inputs, std::span(&y.view, 1));
  return y;
}

float* element(const TensorView& view, std::int64_t row, std::int64_t column) {
  return view.as<float>() + row * view.strides[0] + column;
}

/// The result and the sum of absolute terms, in double.
std::pair<double, double> exact(const CaseData& data, std::int64_t row, std::int64_t column) {
  double sum = 0, magnitude = 0;
  for (std::int64_t k = 0; k < data.inputs[0].shape[1]; ++k) {
    const double term = static_cast<double>(*element(data.inputs[0], row, k)) *
                        static_cast<double>(*element(data.inputs[1], column, k));
    sum += term, magnitude += std::abs(term);
  }
  return {sum, magnitude};
}

/// Terms that are left out, at most 2^-22 of each; 17 additions of a tile and the sum's, once for each of six pairs of
/// parts and chunk of 32 steps.
double bound_of(std::int64_t k) { return std::ldexp(4 + 18 + 6 * std::ceil(static_cast<double>(k) / 32), -24); }

TEST(GemmParts, ErrorsAreThoseOfFloat32) {
  if (const auto reason = no_parts()) GTEST_SKIP() << *reason;
  ThreadPool pool(2);
  for (const std::int64_t m : {48, 63, 80, 197, 1050})
    for (const std::int64_t k : {1, 31, 33, 300, 1500})
      for (const std::int64_t n : {1, 35, 200}) {
        const CaseData data = product_of(m, n, k);
        const OwnedTensor y = run_parts(data, pool);
        double squares = 0, units = 0;
        for (std::int64_t r = 0; r<m; r += m> 200 ? 23 : 5)
          for (std::int64_t c = 0; c<n; c += n> 100 ? 13 : 3) {
            const auto [sum, magnitude] = exact(data, r, c);
            const double error = std::abs(static_cast<double>(*element(y.view, r, c)) - sum);
            ASSERT_LE(error, bound_of(k) * magnitude)
                << m << " rows, " << n << " columns, K " << k << ", row " << r << ", column " << c;
            squares += error * error, units += std::ldexp(magnitude, -24) * std::ldexp(magnitude, -24);
          }
        EXPECT_LE(std::sqrt(squares / units), 2)
            << m << " rows, " << n << " columns, K " << k;  // where parts were lost it would be 250
      }
}

TEST(GemmParts, ARowHasTheSameBitsInAnyCompanyAndOnAnyThreads) {
  if (const auto reason = no_parts()) GTEST_SKIP() << *reason;
  ThreadPool one(1), three(3);
  for (const std::int64_t n : {70, 700})  // with and without rows that threads pack for themselves
    for (const std::int64_t k : {95, 1400, 5000}) {
      const CaseData many = product_of(1300, n, k);
      const OwnedTensor alone = run_parts(many, one), shared = run_parts(many, three);
      EXPECT_EQ(std::memcmp(alone.memory.data(), shared.memory.data(), static_cast<std::size_t>(alone.memory.size())),
                0)
          << n << " columns, K " << k;
      for (const std::int64_t m : {48, 97}) {
        CaseData few = product_of(m, n, k);
        few.inputs[1] = many.inputs[1];
        few.inputs[0] = TensorView(element(many.inputs[0], 500, 0), DType::f32, {m, k});
        const OwnedTensor part = run_parts(few, three);
        EXPECT_EQ(
            std::memcmp(part.memory.data(), element(alone.view, 500, 0), static_cast<std::size_t>(part.memory.size())),
            0)
            << m << " rows, K " << k;
      }
    }
}

TEST(GemmParts, ExtremeElements) {
  if (const auto reason = no_parts()) GTEST_SKIP() << *reason;
  ThreadPool pool(2);
  const CaseData data = product_of(64, 40, 96);
  const TensorView &x = data.inputs[0], &w = data.inputs[1];
  for (std::int64_t c = 0; c < 40; ++c) *element(w, c, 3) = c % 2 == 0 ? 0x1p-30f : 0.0f;
  *element(x, 7, 3) = std::numeric_limits<float>::max();
  *element(x, 9, 3) = std::numeric_limits<float>::infinity();
  *element(x, 11, 3) = std::numeric_limits<float>::quiet_NaN();
  const OwnedTensor y = run_parts(data, pool);
  for (std::int64_t r = 0; r < 64; ++r)
    for (std::int64_t c = 0; c < 40; ++c) {
      if (r == 9 || r == 11) {
        EXPECT_FALSE(std::isfinite(*element(y.view, r, c))) << "row " << r << ", column " << c;
        continue;
      }
      const auto [sum, magnitude] = exact(data, r, c);
      EXPECT_NEAR(static_cast<double>(*element(y.view, r, c)), sum, bound_of(96) * magnitude)
          << "row " << r << ", column " << c;
    }
}

#if defined(__x86_64__)
/// Whether the processor holds that the upper halves of vector registers are in use, where each SSE instruction waits
/// for the one before.
[[gnu::target("xsave")]] bool has_upper_halves() { return (__builtin_ia32_xgetbv(1) & 4) != 0; }

TEST(GemmParts, LeavesNoUpperHalvesInUse) {
  if (const auto reason = no_parts()) GTEST_SKIP() << *reason;
  alignas(64) static float panel[cpu::parts_steps * 32], sums[32 * 32];
  alignas(64) static std::byte rows[32 * cpu::parts_row_bytes], parts[2][cpu::parts_panel_bytes];
  cpu::PanelParts next(panel, cpu::parts_steps, parts[1]);
  const cpu::AmxTiles registers;
  cpu::parts_product(2)(rows, 32, parts[0], 1, true, next, 6, sums);
  EXPECT_FALSE(has_upper_halves());
  EXPECT_LT(next.pairs, 16) << "nothing was split, which is what uses them";
}
#endif

TEST(GemmParts, WhatIsDeclined) {
  if (const auto reason = no_parts()) GTEST_SKIP() << *reason;
  const auto linear = [](DType x, DType w, const Dim& rows) {
    Problem p = make_problem(*find_operator("linear"), {TensorType{x, {rows, 64}}, TensorType{w, {64, 64}}}, {});
    p.constant_inputs = 2;
    return p;
  };
  const Kernel& kernel = parts_kernel();
  EXPECT_EQ(kernel.declines(linear(DType::bf16, DType::f32, 64)), "x is bf16, not f32");
  EXPECT_EQ(kernel.declines(linear(DType::f32, DType::bf16, 64)), "w is bf16, not f32");
  EXPECT_EQ(kernel.declines(linear(DType::f32, DType::f32, 47)), "there are 47 rows, fewer than 48");
  Problem symbolic = linear(DType::f32, DType::f32, Dim::symbol("T"));
  symbolic.maximum.set(Symbol("T"), 512);
  EXPECT_EQ(kernel.declines(symbolic),
            "the number of rows is not known, and with few of them bits would be others than with many");
  EXPECT_EQ(select_kernel(linear(DType::f32, DType::f32, 64)).kernel->name, "gemm.linear.parts");
  EXPECT_NE(select_kernel(linear(DType::f32, DType::f32, 47)).kernel->name, "gemm.linear.parts");
  cpu::force_isa(cpu::Isa::avx512_bf16);
  EXPECT_EQ(kernel.declines(linear(DType::f32, DType::f32, 64)), "avx512_bf16 has no tiles");
  cpu::force_isa(cpu::Isa::amx);
}

}  // namespace
}  // namespace cermet
