// Every operator by name, over its own cases and over fewer rows of them: the bits of an operator that is made for
// exactly these shapes, or its error.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/api/case_call.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

using Bytes = std::vector<std::vector<std::byte>>;

/// The first `rows` rows of the inputs that have as many as the first one.
std::vector<TensorView> first_rows(const CaseData& data, std::int64_t rows) {
  std::vector<TensorView> inputs = data.inputs;
  const std::int64_t all = inputs[0].shape[0];
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].present && inputs[i].shape.rank() > 0 && inputs[i].shape[0] == all && !data.problem.is_constant(i))
      inputs[i].shape[0] = rows;
  return inputs;
}

class CallOfOperator : public testing::TestWithParam<const OpDefinition*> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK); }
  static void TearDownTestSuite() { cermet_destroy(handle); }

  /// An operator for exactly these inputs; nothing where they are rejected.
  static std::optional<Bytes> run_exact(const CaseData& data, const std::vector<TensorView>& inputs) {
    const test::CaseAttributes attributes(data.problem);
    std::vector<cermet_descriptor> descriptors;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      descriptors.push_back({inputs[i].present ? name_of(inputs[i].dtype).data() : nullptr, inputs[i].shape.rank(),
                             inputs[i].shape.begin(), nullptr, data.problem.is_constant(i) ? 1 : 0});
    cermet_op* op = nullptr;
    if (cermet_op_create(handle, data.problem.op->name.data(), descriptors.data(), descriptors.size(),
                         attributes.get().data(), attributes.get().size(), &op) != CERMET_OK)
      return std::nullopt;
    std::vector<test::CaseResult> results;
    for (std::size_t o = 0; o < cermet_op_output_count(op); ++o) {
      cermet_descriptor d{};
      EXPECT_EQ(cermet_op_output(op, o, &d), CERMET_OK);
      results.push_back({*dtype_from_name(d.dtype), shape_of(d.shape, d.ndim), cermet_op_output_alias(op, o)});
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const DLTensor value = test::dl(inputs[i]);
      if (inputs[i].present && data.problem.is_constant(i)) {
        EXPECT_EQ(cermet_op_set_constant(op, i, &value), CERMET_OK) << cermet_last_error_message();
      }
    }
    test::CaseTensors call(inputs, data.problem.constant_inputs, results);
    const cermet_status status =
        cermet_op_run(op, call.in.data(), call.in.size(), call.out.data(), call.out.size(), nullptr, 0, nullptr);
    cermet_op_destroy(op);
    return status == CERMET_OK ? std::optional(call.bytes()) : std::nullopt;
  }

  static cermet_callable* get_op(const CaseData& data) {
    const test::CaseAttributes attributes(data.problem);
    std::vector<DLTensor> samples;
    std::vector<const DLTensor*> given;
    std::vector<const char*> dtypes;
    for (const TensorView& view : data.inputs) samples.push_back(test::dl(view));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      given.push_back(data.inputs[i].present ? &samples[i] : nullptr);
      dtypes.push_back(name_of(data.inputs[i].dtype).data());
    }
    cermet_get_op_options options = cermet_get_op_defaults();
    options.constants = data.problem.constant_inputs;
    options.dtypes = dtypes.data();
    cermet_callable* made = nullptr;
    EXPECT_EQ(cermet_get_op(handle, data.problem.op->name.data(), given.data(), given.size(), attributes.get().data(),
                            attributes.get().size(), &options, &made),
              CERMET_OK)
        << cermet_last_error_message();
    return made;
  }

  static std::optional<Bytes> call(cermet_callable* callable, const CaseData& data,
                                   const std::vector<TensorView>& inputs) {
    std::vector<test::CaseResult> results;
    const test::CaseTensors shapes(inputs, data.problem.constant_inputs, {});
    std::size_t count = 0;
    if (cermet_call_output_count(callable, shapes.in.data(), shapes.in.size(), &count) != CERMET_OK)
      return std::nullopt;
    for (std::size_t o = 0; o < count; ++o) {
      cermet_call_result r{};
      EXPECT_EQ(cermet_call_output(callable, shapes.in.data(), shapes.in.size(), o, &r), CERMET_OK)
          << cermet_last_error_message();
      results.push_back({*dtype_from_name(r.dtype), shape_of(r.shape, r.ndim), r.shared_input});
    }
    test::CaseTensors made(inputs, data.problem.constant_inputs, results);
    const cermet_status status =
        cermet_call(callable, made.in.data(), made.in.size(), made.out.data(), made.out.size(), nullptr);
    return status == CERMET_OK ? std::optional(made.bytes()) : std::nullopt;
  }

  static Shape shape_of(const std::int64_t* dims, std::int32_t rank) {
    Shape shape;
    for (std::int32_t a = 0; a < rank; ++a) shape.push_back(dims[a]);
    return shape;
  }

  static inline cermet_handle* handle = nullptr;
};

TEST_P(CallOfOperator, GivesTheBitsOfAnOperatorForItsShapes) {
  for (const Case& test_case : GetParam()->cases()) {
    const CaseData data = make_case_data(*GetParam(), test_case);
    cermet_callable* const callable = get_op(data);
    ASSERT_NE(callable, nullptr) << test_case.name;
    EXPECT_EQ(cermet_callable_bound_count(callable), 1u);
    std::vector<std::vector<TensorView>> calls{data.inputs};
    if (data.inputs[0].present && data.inputs[0].shape.rank() > 0 && !data.problem.is_constant(0))
      for (const std::int64_t fewer : {1, 2})
        if (data.inputs[0].shape[0] > fewer) calls.push_back(first_rows(data, data.inputs[0].shape[0] - fewer));
    for (const auto& inputs : calls) {
      const std::optional<Bytes> expected = run_exact(data, inputs), found = call(callable, data, inputs);
      const bool is_empty = found && std::ranges::all_of(*found, [](const auto& bytes) { return bytes.empty(); });
      if (is_empty) continue;  // without results nothing is read, and so no index that is out of range
      EXPECT_EQ(found.has_value(), expected.has_value()) << test_case.name << ": " << cermet_last_error_message();
      if (expected && found) {
        EXPECT_EQ(*found, *expected) << test_case.name << ", " << inputs[0].shape.to_string() << " by "
                                     << cermet_callable_kernel(callable);
      }
    }
    cermet_callable_destroy(callable);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CallOfOperator, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
