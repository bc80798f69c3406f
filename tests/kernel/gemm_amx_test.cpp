// Products of AMX tiles: their bits, against the instruction's definition and against int8 dot products, and when they
// are taken.
#include "kernel/cpu/gemm/amx.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "format/element.hpp"
#include "kernel/cpu/amx.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

const Kernel& amx_test_kernel(std::string_view name) {
  for (const Kernel* kernel : cpu::all_kernels())
    if (kernel->name == name) return *kernel;
  throw std::out_of_range(std::string(name));
}

bool has_tiles() { return cpu::supported_isas().back() == cpu::Isa::amx; }
std::string no_tiles() { return cpu::amx_missing().value_or("this build has no AVX-512"); }

OwnedTensor run_with(const CaseData& data, std::string_view kernel, ThreadPool& pool) {
  BoundOp op(data.problem, amx_test_kernel(kernel), pool);
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    if (data.problem.is_constant(i)) op.prepack(i, data.inputs[i]);
  OwnedTensor y(data.problem.outputs[0].dtype, bind(data.problem.outputs[0].dims, {}));
  op.run(data.inputs, std::span(&y.view, 1));
  return y;
}

/// A sum as the manual defines TDPBF16PS, tile after tile of 32 steps; operands are normal numbers.
float sum_of_tiles(const TensorView& x, std::int64_t row, const TensorView& w, std::int64_t column) {
  const auto value = [](const TensorView& view, std::int64_t r, std::int64_t k) {
    return k < view.shape[1] ? static_cast<float>(load(view, r * view.shape[1] + k)) : 0.0f;
  };
  float sum = 0;
  for (std::int64_t k = 0; k < x.shape[1]; k += 32) {
    float first = 0, second = 0;
    for (std::int64_t i = k; i < k + 32; i += 2) {
      first = std::fma(value(x, row, i), value(w, column, i), first);
      second = std::fma(value(x, row, i + 1), value(w, column, i + 1), second);
    }
    sum += first + second;
  }
  return sum;
}

TEST(AmxProducts, SumAsTheManualSays) {
  if (!has_tiles()) GTEST_SKIP() << no_tiles();
  cpu::force_isa(cpu::Isa::amx);
  ThreadPool pool(2);
  for (const std::int64_t m : {1, 15, 17, 33, 48, 49, 400})
    for (const std::int64_t k : {1, 31, 64, 67, 2500}) {
      const CaseData data =
          make_case_data(*find_operator("linear"),
                         {"manual",
                          {CaseOperand{{DType::bf16, {m, k}}}, CaseOperand{{DType::bf16, {35, k}}, {}, 0, true}},
                          {{"out_dtype", "f32"}}});
      const OwnedTensor found = run_with(data, "gemm.linear.amx", pool);
      for (std::int64_t r = 0; r<m; r += m> 100 ? 13 : 1)
        for (std::int64_t c = 0; c < 35; ++c)
          ASSERT_EQ(found.view.as<const float>()[r * 35 + c], sum_of_tiles(data.inputs[0], r, data.inputs[1], c))
              << m << " rows, K " << k << ", row " << r << ", column " << c;
    }
}

/// Slices of the reduction, with several ranges of rows and of panels, on threads that share them or on one.
TEST(AmxProducts, LongReductionsHaveTheSameBits) {
  if (!has_tiles()) GTEST_SKIP() << no_tiles();
  cpu::force_isa(cpu::Isa::amx);
  ThreadPool one(1), three(3);
  for (const std::int64_t m : {300, 1100}) {
    const std::int64_t k = 2311, n = 290;  // K: two slices and part of a chunk
    const CaseData data =
        make_case_data(*find_operator("linear"),
                       {"deep",
                        {CaseOperand{{DType::bf16, {m, k}}}, CaseOperand{{DType::bf16, {n, k}}, {}, 0, true}},
                        {{"out_dtype", "f32"}}});
    const OwnedTensor alone = run_with(data, "gemm.linear.amx", one), shared = run_with(data, "gemm.linear.amx", three);
    EXPECT_EQ(std::memcmp(alone.memory.data(), shared.memory.data(), static_cast<std::size_t>(alone.memory.size())), 0)
        << m << " rows";
    for (std::int64_t r = 0; r < m; r += 59)
      for (std::int64_t c = 0; c < n; c += 17)
        ASSERT_EQ(alone.view.as<const float>()[r * n + c], sum_of_tiles(data.inputs[0], r, data.inputs[1], c))
            << "row " << r << ", column " << c;
  }
}

TEST(AmxProducts, Int8HasTheBitsOfDotProducts) {
  if (!has_tiles()) GTEST_SKIP() << no_tiles();
  cpu::force_isa(cpu::Isa::amx);
  ThreadPool one(1), three(3);
  for (const std::int64_t m : {2, 16, 33, 50, 1100})
    for (const std::int64_t k : {1, 63, 130, 1400}) {
      const auto codes = [](Dims dims, bool constant) {
        return CaseOperand{{DType::i8, std::move(dims)}, integers(-128, 127), 0, constant};
      };
      const auto scales = [](std::int64_t count) { return CaseOperand{{DType::f32, {count}}, uniform(0.01, 0.02)}; };
      const CaseData data = make_case_data(
          *find_operator("scaled_mm"),
          {"bytes", {codes({m, k}, false), codes({67, k}, true), scales(m), scales(67)}, {{"out_dtype", "f32"}}});
      for (ThreadPool* pool : {&one, &three}) {
        const OwnedTensor tiles = run_with(data, "gemm.scaled_mm.amx", *pool),
                          vectors = run_with(data, "gemm.scaled_mm.packed", *pool);
        EXPECT_EQ(
            std::memcmp(tiles.memory.data(), vectors.memory.data(), static_cast<std::size_t>(tiles.memory.size())), 0)
            << m << " rows, K " << k;
      }
    }
}

/// The reason to decline with CERMET_AMX_PRODUCTS=`wanted`, or "taken"; in a fresh process, because the variable is
/// read once.
[[noreturn]] void ask_for_tiles(const char* wanted) {
  setenv("CERMET_AMX_PRODUCTS", wanted, 1);
  try {
    std::fputs(cpu::amx_decline(DType::bf16).value_or("taken").c_str(), stderr);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
  }
  std::exit(0);
}

TEST(AmxProductsDeathTest, TheEnvironmentForcesThem) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(ask_for_tiles("sometimes"), testing::ExitedWithCode(0),
              "CERMET_AMX_PRODUCTS: expected auto, on or off, found 'sometimes'");
  if (!has_tiles()) GTEST_SKIP() << no_tiles();
  EXPECT_EXIT(ask_for_tiles("on"), testing::ExitedWithCode(0), "taken");
  EXPECT_EXIT(ask_for_tiles("off"), testing::ExitedWithCode(0), "switched off by CERMET_AMX_PRODUCTS");
}

TEST(AmxProducts, OtherInstructionSetsAndTypesDecline) {
  if (!has_tiles()) GTEST_SKIP() << no_tiles();
  const auto linear = [](DType x, DType w) {
    Problem p = make_problem(*find_operator("linear"), {TensorType{x, {2, 8}}, TensorType{w, {4, 8}}}, {});
    p.constant_inputs = 2;
    return p;
  };
  EXPECT_EQ(amx_test_kernel("gemm.linear.amx").declines(linear(DType::f32, DType::bf16)), "x is f32, not bf16");
  cpu::force_isa(cpu::Isa::avx512_bf16);
  EXPECT_EQ(amx_test_kernel("gemm.linear.amx").declines(linear(DType::bf16, DType::bf16)), "avx512_bf16 has no tiles");
  EXPECT_NE(select_kernel(linear(DType::bf16, DType::bf16)).kernel->name, "gemm.linear.amx");
  cpu::force_isa(cpu::Isa::amx);
  EXPECT_EQ(select_kernel(linear(DType::bf16, DType::bf16)).kernel->name, "gemm.linear.amx");
}

#if defined(__x86_64__)
/// Prints the highest instruction set and why there are no tiles, in a process whose arch_prctl the system answers with
/// EPERM.
[[noreturn]] void ask_without_permission() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::exit(2);
  std::fprintf(stderr, "%s: %s", std::string(name_of(cpu::active_isa())).c_str(),
               cpu::amx_decline(DType::bf16).value_or("taken").c_str());
  std::exit(0);
}

TEST(AmxProductsDeathTest, AProcessThatIsRefusedTilesGoesOnWithoutThem) {
  if (!__builtin_cpu_supports("amx-tile"))
    GTEST_SKIP() << "this processor has no AMX";  // has_tiles() would ask for the permission, once and for all
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(ask_without_permission(), testing::ExitedWithCode(0),
              "avx512_bf16: the operating system refuses this process AMX tiles: Operation not permitted");
}
#endif

}  // namespace
}  // namespace cermet
