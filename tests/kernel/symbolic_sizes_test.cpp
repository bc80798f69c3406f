// Kernels whose workspace or tables follow a dimension, bound for a largest size and run with others.
#include <gtest/gtest.h>

#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

class SymbolicSizes : public testing::TestWithParam<const char*> {};

/// The call's symbol T as a number.
std::string with_size(std::string text, std::int64_t size) {
  for (std::size_t at = text.find('T'); at != std::string::npos; at = text.find('T'))
    text.replace(at, 1, std::to_string(size));
  return text;
}

TEST_P(SymbolicSizes, KernelsBoundForTenComputeWhatTheReferenceDoes) {
  OperatorCall symbolic = parse_call(GetParam());
  const OpDefinition& op = *find_operator(symbolic.name);
  Problem problem = make_problem(op, std::move(symbolic.inputs), symbolic.attributes);
  problem.maximum.set(Symbol("T"), 10);
  for (const std::int64_t size : {3, 4, 10, 1}) {
    const OperatorCall call = parse_call(with_size(GetParam(), size));
    Case test_case{"", {}, call.attributes};
    for (const auto& type : call.inputs) test_case.inputs.push_back(CaseOperand{*type, integers(0, 1)});
    const CaseData data = make_case_data(op, test_case);
    const Expected expected = run_reference(data);
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<OwnedTensor> memory;
      std::vector<TensorView> results;
      for (const TensorType& type : data.problem.outputs)
        results.push_back(memory.emplace_back(type.dtype, cermet::bind(type.dims, {})).view);
      BoundOp bound(problem, *cpu::kernels_of(op.kind).front(), pool);
      bound.run(data.inputs, results);
      EXPECT_EQ(compare(data.problem, expected, results), "") << "T = " << size << ", " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, SymbolicSizes,
                         testing::Values("dft(f32[2, T, 1])", "dft(f32[2, T, 2]) {inverse = true}",
                                         "dft(f32[2, T, 1]) {onesided = true}", "nonzero(f32[T, 3])",
                                         "unique(f32[T, 3])", "unique(f32[T, 3]) {axis = [0], sorted = false}",
                                         "det(f32[T, 2, 2])", "det(f32[T, T])", "gather_nd(f32[4, T], i64[T, 1])",
                                         "gather_elements(f32[4, 3], i64[T, 3])",
                                         "scatter_nd(bf16[4, T], i64[T, 1], bf16[T, T]) {reduction = \"sum\"}",
                                         "scatter_nd(f32[4, 5], i64[T, 2], f32[T])",
                                         "lstm(f32[T, 2, 3], f32[1, 16, 3], f32[1, 16, 4])",
                                         "gru(f32[2, T, 3], f32[1, 12, 3], f32[1, 12, 4])",
                                         "rnn(f32[T, 2, 3], f32[1, 4, 3], f32[1, 4, 4])"));

}  // namespace
}  // namespace cermet
