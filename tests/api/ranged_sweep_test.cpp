// Every operator, over its own cases: a varying first dimension gives the same bits as a constant one, or an error that
// says what must be known.
#include <gtest/gtest.h>

#include <set>

#include "op/schema/operator.hpp"
#include "tests/api/case_call.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

/// Kinds of operators whose first dimension must be known: ranks, experts or blocks, not tokens.
const std::set<std::string_view> known_first_dimension{"merge_attention_states", "iota"};

class RangedOperator : public testing::TestWithParam<const OpDefinition*> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK); }
  static void TearDownTestSuite() { cermet_destroy(handle); }

  /// Creates the case's operator; dimension 0 of operands that are `size` long varies, where `size` >= 0: of operand 0
  /// alone, or of all.
  static cermet_status create(const CaseData& data, std::int64_t size, bool everywhere, cermet_op** op) {
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<cermet_descriptor> inputs;
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      const TensorView& view = data.inputs[i];
      shapes.emplace_back(view.shape.begin(), view.shape.end());
      const bool constant = view.present && data.problem.is_constant(i);
      if (size >= 0 && !constant && view.present && !shapes.back().empty() && shapes.back()[0] == size &&
          (i == 0 || everywhere))
        shapes.back()[0] = CERMET_DIM('M');
      inputs.push_back({view.present ? name_of(view.dtype).data() : nullptr, view.shape.rank(), shapes.back().data(),
                        nullptr, constant ? 1 : 0});
    }
    const test::CaseAttributes attributes(data.problem);
    const cermet_range range{'M', size + 5};
    return cermet_op_create_ranged(handle, data.problem.op->name.data(), inputs.data(), inputs.size(),
                                   attributes.get().data(), attributes.get().size(), &range, size >= 0 ? 1 : 0, op);
  }

  /// Runs on copies of operands that are updated in place, and returns the bytes of the results.
  static std::vector<std::vector<std::byte>> run(cermet_op* op, const CaseData& data) {
    std::vector<test::CaseResult> results;
    std::vector<DLTensor> shapes;
    std::vector<const DLTensor*> given;
    for (const TensorView& view : data.inputs) shapes.push_back(test::dl(view));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const bool constant = data.inputs[i].present && data.problem.is_constant(i);
      given.push_back(data.inputs[i].present && !constant ? &shapes[i] : nullptr);
      if (constant) {
        EXPECT_EQ(cermet_op_set_constant(op, i, &shapes[i]), CERMET_OK) << cermet_last_error_message();
      }
    }
    for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
      const TensorType& type = data.problem.outputs[o];
      std::vector<std::int64_t> shape(Shape::max_rank);
      EXPECT_EQ(cermet_op_output_shape(op, o, given.data(), given.size(), shape.data()), CERMET_OK)
          << cermet_last_error_message();
      EXPECT_TRUE(std::equal(type.dims.begin(), type.dims.end(), shape.begin(),
                             [](const Dim& d, std::int64_t n) { return d.constant() == n; }));
      results.push_back({type.dtype, cermet::bind(type.dims, {}), cermet_op_output_alias(op, o)});
    }
    test::CaseTensors call(data.inputs, data.problem.constant_inputs, results);
    EXPECT_EQ(cermet_op_run(op, call.in.data(), call.in.size(), call.out.data(), call.out.size(), nullptr, 0, nullptr),
              CERMET_OK)
        << cermet_last_error_message();
    return call.bytes();
  }

  static inline cermet_handle* handle = nullptr;
};

TEST_P(RangedOperator, GivesTheBitsOfTheNumber) {
  const OpDefinition& op = *GetParam();
  int taken = 0;
  for (const Case& test_case : op.cases()) {
    if (!test_case.inputs[0] || test_case.inputs[0]->constant || test_case.inputs[0]->type.rank() == 0) continue;
    const std::int64_t size = test_case.inputs[0]->type.dims[0].constant();
    const CaseData data = make_case_data(op, test_case);
    cermet_op* known = nullptr;
    ASSERT_EQ(create(data, -1, false, &known), CERMET_OK) << test_case.name << ": " << cermet_last_error_message();
    const auto expected = run(known, data);
    cermet_op_destroy(known);
    for (const bool everywhere : {false, true}) {
      cermet_op* ranged = nullptr;
      const cermet_status status = create(data, size, everywhere, &ranged);
      if (status != CERMET_OK) {
        EXPECT_TRUE(status == CERMET_INVALID_ARGUMENT || status == CERMET_UNSUPPORTED)
            << test_case.name << ": " << cermet_last_error_message();
        continue;
      }
      ++taken;
      EXPECT_EQ(run(ranged, data), expected) << test_case.name;
      cermet_op_destroy(ranged);
    }
  }
  EXPECT_EQ(taken == 0, known_first_dimension.contains(op.name))
      << taken << " cases may have a first dimension that varies";
}

INSTANTIATE_TEST_SUITE_P(Operators, RangedOperator, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
