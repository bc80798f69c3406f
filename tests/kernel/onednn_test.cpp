// Products by oneDNN, where it is installed: several pieces, threads and row strides beside the reference, and when they are taken.
#include "kernel/cpu/gemm/onednn_library.hpp"

#include <gtest/gtest.h>

#include "kernel/cpu/kernels.hpp"
#include "select/case_run.hpp"
#include "select/select.hpp"
#include "select/tuning_key.hpp"

namespace cermet {
namespace {

const Kernel& onednn_kernel_of(OpKind op) {
  for (const Kernel* kernel : cpu::kernels_of(op))
    if (kernel->name.starts_with("onednn.")) return *kernel;
  throw std::out_of_range("oneDNN");
}

CaseData onednn_linear(std::int64_t m, std::int64_t n, std::int64_t k) {
  return make_case_data(*find_operator("linear"), {"onednn", {CaseOperand{{DType::f32, {m, k}}}, CaseOperand{{DType::f32, {n, k}}, {}, 0, true}}});
}

CaseData onednn_scaled_mm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return make_case_data(*find_operator("scaled_mm"), {"onednn",
                                                      {CaseOperand{{DType::i8, {m, k}}}, CaseOperand{{DType::i8, {n, k}}, {}, 0, true},
                                                       CaseOperand{{DType::f32, {m}}}, CaseOperand{{DType::f32, {n}}}}});
}

TEST(OneDnn, SeveralPiecesAndThreadsComputeWhatTheReferenceDoes) {
  if (cpu::onednn_missing()) GTEST_SKIP() << *cpu::onednn_missing();
  ThreadPool one(1), three(3);
  for (const CaseData& data : {onednn_linear(130, 1100, 24), onednn_linear(300, 33, 17), onednn_scaled_mm(150, 1050, 40), onednn_scaled_mm(260, 70, 9)}) {
    const Kernel& kernel = onednn_kernel_of(data.problem.op->kind);
    if (const Decline reason = kernel.declines(data.problem)) GTEST_SKIP() << *reason;
    const Expected expected = run_reference(data);
    for (ThreadPool* pool : {&one, &three})
      for (const char* config : {"default", "rows=128"})
        EXPECT_EQ(run_case(data, expected, kernel, *pool, {.padding = 3, .config = parse_config(config)}), "") << data.problem.to_string() << " " << config;
  }
}

TEST(OneDnn, IsTakenWhereItWasMeasuredAlone) {
  const CaseData data = onednn_linear(130, 1100, 24);
  const Region region(data.problem);
  EXPECT_FALSE(select_kernel(region, {.threads = 2, .tuned = false}).kernel->name.starts_with("onednn.")) << "it has no model";
  if (cpu::onednn_missing()) GTEST_SKIP() << *cpu::onednn_missing();
  const Choice named = choose_by_name(region, "onednn.linear", "rows=128", {.threads = 2, .tuned = false});
  EXPECT_EQ(named.config.to_string(), "rows=128");
}

TEST(OneDnn, DeclinesWhatItHasNoSumsFor) {
  const auto reason_of = [](DType x, const Dim& rows) {
    const Problem problem = make_problem(*find_operator("linear"), {TensorType{x, {rows, Dim(8)}}, TensorType{DType::f32, {Dim(8), Dim(8)}}, std::nullopt}, {});
    return onednn_kernel_of(OpKind::linear).declines(Region(problem)).value_or("");
  };
  EXPECT_EQ(reason_of(DType::bf16, Dim(4)), "x is bf16, not f32");
  EXPECT_EQ(reason_of(DType::f32, Dim(Symbol("T"))), "the number of rows is not known, and with few of them bits would be others than with many");
}

}  // namespace
}  // namespace cermet
