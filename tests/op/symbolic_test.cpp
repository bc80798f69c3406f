// Shape inference with a symbol must agree with inference on the number that the symbol is bound to, over every
// operator's own cases.
#include <gtest/gtest.h>

#include <set>

#include "op/schema/operator.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

using Types = std::vector<std::optional<TensorType>>;

/// The case's types with dimension 0 of some operands as the symbol T: of the first operand only, or of all that are as
/// long as it.
Types with_symbol(const Case& test_case, bool everywhere, std::int64_t size) {
  Types types;
  for (std::size_t i = 0; i < test_case.inputs.size(); ++i) {
    types.push_back(test_case.inputs[i] ? std::optional(test_case.inputs[i]->type) : std::nullopt);
    if (!types.back() || types.back()->rank() == 0 || (i > 0 && !everywhere)) continue;
    if (types.back()->dims[0] == Dim(size)) types.back()->dims[0] = Dim::symbol("T");
  }
  return types;
}

/// Operators whose first dimension must be known: ranks, experts or blocks, not tokens.
const std::set<std::string_view> known_first_dimension{"merge_attention_states",  // tokens and heads
                                                       "iota"};                   // one element

class Symbolic : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(Symbolic, AgreesWithNumbers) {
  const OpDefinition& op = *GetParam();
  int agreed = 0;
  for (const Case& test_case : op.cases()) {
    if (!test_case.inputs[0] || test_case.inputs[0]->type.rank() == 0) continue;
    const std::int64_t size = test_case.inputs[0]->type.dims[0].constant();
    const Problem known = make_problem(op, with_symbol(test_case, false, -1), test_case.attributes);
    SymbolValues values;
    values.set(Symbol("T"), size);
    for (const bool everywhere : {false, true}) {
      Problem symbolic;
      try {
        symbolic = make_problem(op, with_symbol(test_case, everywhere, size), test_case.attributes);
      } catch (const Error& error) {
        EXPECT_NE(error.status(), Status::internal) << test_case.name << ": " << error.what();
        continue;  // this dimension, or this pair of dimensions, must be known
      }
      ++agreed;
      ASSERT_EQ(symbolic.outputs.size(), known.outputs.size()) << test_case.name;
      for (std::size_t o = 0; o < known.outputs.size(); ++o) {
        EXPECT_EQ(symbolic.outputs[o].dtype, known.outputs[o].dtype) << test_case.name;
        EXPECT_EQ(cermet::bind(symbolic.outputs[o].dims, values), cermet::bind(known.outputs[o].dims, {}))
            << test_case.name << ": " << symbolic.to_string();
      }
      symbolic.maximum = values;
      EXPECT_DOUBLE_EQ(cost_of(symbolic).operations, cost_of(known).operations) << test_case.name;
      EXPECT_DOUBLE_EQ(cost_of(symbolic).bytes, cost_of(known).bytes) << test_case.name;
    }
  }
  if (known_first_dimension.contains(op.name)) EXPECT_EQ(agreed, 0);
  else EXPECT_GT(agreed, 0) << "no case may have a symbolic first dimension";
}

INSTANTIATE_TEST_SUITE_P(Operators, Symbolic, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
