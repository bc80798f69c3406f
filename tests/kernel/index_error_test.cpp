// Indices that operands carry are checked when a kernel runs: an index outside is an error that names operator and
// operand, on every thread.
#include <gtest/gtest.h>

#include "kernel/cpu/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

std::string message_of_run(OpKind kind, const std::vector<std::optional<CaseOperand>>& operands,
                           const Attributes& attributes = {}) {
  const CaseData data = make_case_data(definition(kind), {"index", operands, attributes});
  ThreadPool pool(2);
  std::vector<OwnedTensor> results;
  std::vector<TensorView> views;
  for (const TensorType& type : data.problem.outputs) {
    results.emplace_back(type.dtype, bind(type.dims, {}));
    views.push_back(results.back().view);
  }
  BoundOp op(data.problem, *cpu::kernels_of(kind).front(), pool);
  try {
    op.run(data.inputs, views);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using enum DType;

TEST(IndexError, RopePosition) {
  const CaseOperand q{{f32, {3, 2, 8}}}, table{{f32, {5, 4}}};
  EXPECT_EQ(message_of_run(OpKind::rope, {q, std::nullopt, table, table, CaseOperand{{i32, {3}}, values({0, 1, 5})}}),
            "rope: operand positions: expected an index in [0, 5), found 5");
  EXPECT_EQ(message_of_run(OpKind::rope, {q, std::nullopt, table, table, CaseOperand{{i64, {3}}, values({0, -1, 4})}}),
            "rope: operand positions: expected an index in [0, 5), found -1");
  EXPECT_EQ(message_of_run(OpKind::rope, {q, std::nullopt, table, table, CaseOperand{{i64, {3}}, values({0, 1, 4})}}),
            "no error");
}

TEST(IndexError, DynamicQuantGroup) {
  const CaseOperand x{{f32, {4, 8}}}, smooth{{f32, {2, 8}}};
  EXPECT_EQ(message_of_run(OpKind::dynamic_quant, {x, smooth, CaseOperand{{i32, {4}}, values({0, 1, 2, 0})}}),
            "dynamic_quant: operand group_index: expected an index in [0, 2), found 2");
  EXPECT_EQ(message_of_run(OpKind::dynamic_quant, {x, smooth, CaseOperand{{i32, {3}}, values({0, 2, 3})}},
                           {{"index", "offsets"}}),
            "dynamic_quant: operand group_index: expected an index in [0, 2), found 2");
}

}  // namespace
}  // namespace cermet
