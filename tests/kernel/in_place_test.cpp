// Operators that promise to work in place: the same memory for an operand and a result gives the same bits as separate memory.
#include <gtest/gtest.h>

#include <cstring>

#include "kernel/cpu/kernels.hpp"
#include "op/case_data.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// Result o takes the memory of operand shared[o].
void expect_same_bits_in_place(OpKind kind, const std::vector<std::size_t>& shared) {
  ThreadPool pool(3);
  int compared = 0;
  for (const Case& test_case : definition(kind).cases()) {
    CaseData data = make_case_data(definition(kind), test_case);
    if (data.problem.outputs.size() != shared.size()) continue;
    bool fits = true;
    for (std::size_t o = 0; o < shared.size(); ++o) fits = fits && data.problem.outputs[o] == *data.problem.inputs[shared[o]];
    if (!fits) continue;
    for (const Kernel* kernel : cpu::kernels_of(kind)) {
      if (kernel->declines(data.problem)) continue;
      std::vector<OwnedTensor> separate;
      std::vector<TensorView> apart, together;
      for (std::size_t o = 0; o < shared.size(); ++o) {
        separate.emplace_back(data.problem.outputs[o].dtype, bind(data.problem.outputs[o].dims, {}));
        apart.push_back(separate.back().view);
        together.push_back(data.inputs[shared[o]]);
      }
      BoundOp op(data.problem, *kernel, pool);
      op.run(data.inputs, apart);
      op.run(data.inputs, together);
      for (std::size_t o = 0; o < shared.size(); ++o) {
        const Rows a(apart[o]), b(together[o]);
        const auto bytes = static_cast<std::size_t>(a.length()) * size_of(apart[o].dtype);
        for (std::int64_t r = 0; r < a.count(); ++r)
          ASSERT_TRUE(bytes == 0 || std::memcmp(a.row(r), b.row(r), bytes) == 0) << test_case.name << ", " << kernel->name << ", result " << o << ", row " << r;
      }
      data = make_case_data(definition(kind), test_case);  // the run in place overwrote its operands
      ++compared;
    }
  }
  EXPECT_GT(compared, 5);
}

class InPlace : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(InPlace, GivesTheSameBits) {
  std::vector<std::size_t> shared;
  for (const int input : GetParam()->in_place) shared.push_back(static_cast<std::size_t>(input));
  expect_same_bits_in_place(GetParam()->kind, shared);
}

std::vector<const OpDefinition*> operators_in_place() {
  std::vector<const OpDefinition*> list;
  for (const OpDefinition& op : all_operators())
    if (!op.in_place.empty()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Operators, InPlace, testing::ValuesIn(operators_in_place()), [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace cermet
