// Every operator over its cases with tensors that lie otherwise than densely: what dense ones give. And in place, where
// its page says so.
#include <gtest/gtest.h>

#include "tests/api/layout_call.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

class LayoutOfOperator : public testing::TestWithParam<const OpDefinition*> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(cermet_create("cpu", 2, &handle_), CERMET_OK); }
  static void TearDownTestSuite() { cermet_destroy(handle_); }

  /// Calls check(call, dense results, name) for every case that runs and has results.
  template <class Check>
  static void for_each_case(Check&& check) {
    for (const Case& test_case : GetParam()->cases()) {
      const CaseData data = make_case_data(*GetParam(), test_case);
      test::LayoutCall call(handle_, data);
      std::string message;
      const auto dense = call.run({}, message);
      if (dense) check(call, *dense, test_case.name);
    }
  }
  template <class Bytes>
  static void expect_same(test::LayoutCall& call, const test::LayoutCall::How& how, const Bytes& dense,
                          const std::string& what) {
    std::string message;
    const auto found = call.run(how, message);
    ASSERT_TRUE(found) << what << ": " << message;
    if (*found == dense) return;
    // A kernel may add in another order where rows are apart (average_pool): then it is right as any kernel is.
    const Problem& problem = call.data().problem;
    std::vector<OwnedTensor> owned;
    std::vector<TensorView> views;
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      OwnedTensor& made = owned.emplace_back(problem.outputs[o].dtype, bind(problem.outputs[o].dims, {}));
      std::ranges::copy((*found)[o], made.memory.data());
      views.push_back(made.view);
    }
    EXPECT_EQ(compare(problem, run_reference(call.data()), views), "") << what;
  }

  static inline cermet_handle* handle_ = nullptr;
};

TEST_P(LayoutOfOperator, ReadsOperandsWithGaps) {
  for_each_case([](test::LayoutCall& call, const auto& dense, const std::string& name) {
    const std::vector<TensorView>& inputs = call.data().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present || call.is_constant(i) || inputs[i].shape.rank() == 0 || inputs[i].elements() == 0)
        continue;
      const int contiguous = dense_dims_of(call.data().problem);
      expect_same(call,
                  {.input = static_cast<int>(i), .input_strides = test::padded_strides(inputs[i].shape, contiguous)},
                  dense, fmt::format("{}: input {} with gaps", name, i));
      expect_same(call,
                  {.input = static_cast<int>(i), .input_strides = test::permuted_strides(inputs[i].shape, contiguous)},
                  dense, fmt::format("{}: input {} permuted", name, i));
    }
  });
}

TEST_P(LayoutOfOperator, WritesResultsWithAnyDisjointStrides) {
  for_each_case([](test::LayoutCall& call, const auto& dense, const std::string& name) {
    expect_same(call, {.permuted_outputs = true}, dense, name + ": results permuted");
  });
}

TEST_P(LayoutOfOperator, RunsInPlaceWhereItsPageSaysSo) {
  const OpDefinition& op = *GetParam();
  const bool elementwise = op.in_place.empty() && std::ranges::all_of(op.inputs, [](const OperandSpec& s) {
                             return s.mapping == Mapping::one_to_one;
                           });
  const bool may = std::ranges::any_of(op.in_place, [](int input) { return input >= 0; });
  if (op.semantics.find("In place works") != std::string_view::npos) {
    EXPECT_TRUE(may) << "the page says that it works in place";
  }
  std::size_t tried = 0;
  for_each_case([&](test::LayoutCall& call, const auto& dense, const std::string& name) {
    const Problem& p = call.data().problem;
    for (std::size_t o = 0; o < p.outputs.size(); ++o)
      for (std::size_t i = 0; i < p.inputs.size(); ++i) {
        const bool promised = elementwise || (o < op.in_place.size() && op.in_place[o] == static_cast<int>(i));
        if (!promised || !p.has(i) || call.is_constant(i) || p.input(i) != p.outputs[o]) continue;
        ++tried;
        expect_same(call, {.over = static_cast<int>(i), .output = static_cast<int>(o)}, dense,
                    fmt::format("{}: output {} in place of input {}", name, o, i));
      }
  });
  if (may) {
    EXPECT_GT(tried, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, LayoutOfOperator, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
