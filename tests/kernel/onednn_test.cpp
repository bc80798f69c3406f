// Products by oneDNN, where it is installed: several pieces, threads and row strides beside the reference, and when
// they are taken.
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

CaseData onednn_linear(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::f32, bool bias = false,
                       std::int64_t apart = 0) {
  Case linear{"onednn", {CaseOperand{{type, {m, k}}, {}, apart}, CaseOperand{{type, {n, k}}, {}, 0, true}}};
  if (bias) linear.inputs.push_back(CaseOperand{{type, {n}}});
  return make_case_data(*find_operator("linear"), linear);
}

CaseData onednn_scaled_mm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return make_case_data(*find_operator("scaled_mm"),
                        {"onednn",
                         {CaseOperand{{DType::i8, {m, k}}}, CaseOperand{{DType::i8, {n, k}}, {}, 0, true},
                          CaseOperand{{DType::f32, {m}}}, CaseOperand{{DType::f32, {n}}}}});
}

TEST(OneDnn, SeveralPiecesAndThreadsComputeWhatTheReferenceDoes) {
  if (cpu::onednn_missing()) GTEST_SKIP() << *cpu::onednn_missing();
  ThreadPool one(1), three(3);
  for (const CaseData& data : {onednn_linear(130, 1100, 24), onednn_linear(300, 33, 17),
                               onednn_scaled_mm(150, 1050, 40), onednn_scaled_mm(260, 70, 9)}) {
    const Kernel& kernel = onednn_kernel_of(data.problem.op->kind);
    if (const Decline reason = kernel.declines(data.problem)) GTEST_SKIP() << *reason;
    const Expected expected = run_reference(data);
    for (ThreadPool* pool : {&one, &three})
      for (const char* config : {"default", "rows=128"})
        EXPECT_EQ(run_case(data, expected, kernel, *pool, {.padding = 3, .config = parse_config(config)}), "")
            << data.problem.to_string() << " " << config;
  }
}

const Kernel& packed_kernel_of(OpKind op) {
  for (const Kernel* kernel : cpu::kernels_of(op))
    if (kernel->name.starts_with("onednn.") && kernel->name.ends_with(".packed")) return *kernel;
  throw std::out_of_range("oneDNN");
}

/// Pieces of up to 64 and 256 rows, one more and one less, and of 128 columns, whole and not, with a bias and without,
/// rows that lie apart, and one, two and three threads.
TEST(OneDnn, PackedWeightsComputeWhatTheReferenceDoes) {
  if (cpu::onednn_primitives_missing()) GTEST_SKIP() << *cpu::onednn_primitives_missing();
  ThreadPool one(1), three(3);
  std::size_t ran = 0;
  for (const CaseData& data :
       {onednn_linear(130, 300, 24), onednn_linear(16, 33, 17), onednn_linear(147, 256, 65, DType::bf16),
        onednn_linear(40, 130, 31, DType::bf16, true, 8), onednn_scaled_mm(193, 270, 40),
        onednn_scaled_mm(70, 128, 9)}) {
    const Kernel& kernel = packed_kernel_of(data.problem.op->kind);
    if (const Decline reason = kernel.declines(data.problem)) {
      EXPECT_NE(reason->find("dot product"), std::string::npos) << *reason;  // what an old processor lacks
      continue;
    }
    const Expected expected = run_reference(data);
    for (ThreadPool* pool : {&one, &three})
      for (const char* config : {"default", "rows=64"})
        EXPECT_EQ(run_case(data, expected, kernel, *pool,
                           {.padding = 3, .config = data.problem.size(0, 0) > 64 ? parse_config(config) : Config()}),
                  "")
            << data.problem.to_string() << " " << config;
    ++ran;
  }
  EXPECT_GE(ran, 2u);
}

TEST(OneDnn, PackedWeightsAreForConstantsAndKnownRows) {
  const auto reason_of = [](DType type, const Dim& rows, int constant) {
    Problem problem =
        make_problem(*find_operator("linear"),
                     {TensorType{type, {rows, Dim(8)}}, TensorType{type, {Dim(8), Dim(8)}}, std::nullopt}, {});
    problem.constant_inputs = constant;
    return packed_kernel_of(OpKind::linear).declines(Region(problem)).value_or("");
  };
  EXPECT_EQ(reason_of(DType::f32, Dim(64), 0), "weight is not constant, so it cannot be prepacked");
  EXPECT_EQ(reason_of(DType::f16, Dim(64), 2), "w is f16, not f32 or bf16");
  EXPECT_EQ(reason_of(DType::f32, Dim(Symbol("T")), 2),
            "the number of rows is not known, and each needs code of its own");
  EXPECT_EQ(reason_of(DType::f32, Dim(15), 2), "fewer than 16 rows, for which oneDNN prefers another order of weights");
  EXPECT_EQ(reason_of(DType::f32, Dim(16), 2), cpu::onednn_primitives_missing().value_or(""));
}

TEST(OneDnn, IsTakenWhereItWasMeasuredAlone) {
  const CaseData data = onednn_linear(130, 1100, 24);
  const Region region(data.problem);
  EXPECT_FALSE(select_kernel(region, {.threads = 2, .tuned = false}).kernel->name.starts_with("onednn."))
      << "it has no model";
  if (cpu::onednn_missing()) GTEST_SKIP() << *cpu::onednn_missing();
  const Choice named = choose_by_name(region, "onednn.linear", "rows=128", {.threads = 2, .tuned = false});
  EXPECT_EQ(named.config.to_string(), "rows=128");
}

TEST(OneDnn, DeclinesWhatItHasNoSumsFor) {
  const auto reason_of = [](DType x, const Dim& rows) {
    const Problem problem =
        make_problem(*find_operator("linear"),
                     {TensorType{x, {rows, Dim(8)}}, TensorType{DType::f32, {Dim(8), Dim(8)}}, std::nullopt}, {});
    return onednn_kernel_of(OpKind::linear).declines(Region(problem)).value_or("");
  };
  EXPECT_EQ(reason_of(DType::bf16, Dim(4)), "x is bf16, not f32");
  EXPECT_EQ(reason_of(DType::f32, Dim(Symbol("T"))),
            "the number of rows is not known, and with few of them bits would be others than with many");
}

}  // namespace
}  // namespace cermet
