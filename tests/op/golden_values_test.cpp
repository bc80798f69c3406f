// References against an oracle that shares no code with them; the values and their file format:
// tests/support/golden_values.hpp.
#include "tests/support/golden_values.hpp"

#include "op/schema/operator.hpp"

#include <map>
#include <set>

namespace cermet {
namespace {

const std::vector<GoldenCase>& cases() {
  static const std::vector<GoldenCase> list = golden_cases();
  return list;
}

/// Whether the reference rounds as kernels do: those that quantize to float32, those of f64 to double.
bool rounds_as_kernels(const GoldenCase& golden) {
  const DType dtype = golden.results.front().type.dtype;
  return dtype == DType::i8 || dtypes::fp8.contains(dtype) || dtype == DType::f64;
}

TEST(GoldenValues, ReferencesAgree) {
  // References compute in double and do not lose what float32 may, except those that round to float32 before
  // quantizing, and those of f64.
  constexpr double of_double = 0x1p-6;
  for (const GoldenCase& golden : cases()) {
    SCOPED_TRACE(golden.place);
    const Expected found = run_reference(golden.data);
    std::vector<TensorView> views;
    for (const OwnedTensor& output : found.outputs) views.push_back(output.view);
    EXPECT_EQ(compare_with_golden(golden, views, rounds_as_kernels(golden) ? 1 : of_double), "");
  }
}

TEST(GoldenValues, EveryOperatorHasThem) {
  std::set<std::string_view> covered;
  for (const GoldenCase& golden : cases()) covered.insert(golden.call.name);
  for (const OpDefinition& op : all_operators())
    EXPECT_TRUE(covered.contains(op.name)) << op.name << ": no file of tests/op/golden has a case";
}

TEST(GoldenValues, EveryOptionalOperandIsGivenAndLeftOut) {
  for (const OpDefinition& op : all_operators())
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i].optional) continue;
      std::set<bool> given;
      for (const GoldenCase& golden : cases())
        if (golden.call.name == op.name) given.insert(golden.data.problem.has(i));
      EXPECT_EQ(given.size(), 2u) << op.name << ": operand " << op.inputs[i].name << " is always or never given";
    }
}

TEST(GoldenValues, EveryAttributeHasItsDefaultAndAnotherValue) {
  for (const OpDefinition& op : all_operators())
    for (const AttributeSpec& attribute : op.attributes) {
      std::set<std::string> seen;
      bool left_out = op.kind == OpKind::cast ||  // its type must be given
                      (op.kind == OpKind::iota && attribute.name == "dims");
      for (const GoldenCase& golden : cases()) {
        if (golden.call.name != op.name) continue;
        seen.insert(to_string(*golden.data.problem.attributes.find(attribute.name)));
        left_out = left_out || !golden.call.attributes.find(attribute.name);
      }
      EXPECT_TRUE(left_out) << op.name << ": attribute " << attribute.name << " is always given";
      EXPECT_GE(seen.size(), 2u) << op.name << ": attribute " << attribute.name
                                 << " has only one value in tests/op/golden";
      for (const std::string_view choice : attribute.choices)
        EXPECT_TRUE(seen.contains(to_string(AttributeValue(std::string(choice)))))
            << op.name << ": attribute " << attribute.name << " is never " << choice;
    }
}

TEST(GoldenValues, EveryElementTypeIsThere) {
  for (const OpDefinition& op : all_operators()) {
    std::vector<DTypeSet> seen(op.inputs.size());
    for (const GoldenCase& golden : cases()) {
      if (golden.call.name != op.name) continue;
      for (std::size_t i = 0; i < golden.data.problem.inputs.size(); ++i)
        if (golden.data.problem.has(i))
          seen[std::min(i, seen.size() - 1)] =
              seen[std::min(i, seen.size() - 1)] | DTypeSet{golden.data.problem.input(i).dtype};
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(seen[i].to_string(), op.inputs[i].dtypes.to_string())
          << op.name << ": element types of operand " << op.inputs[i].name;
  }
}

}  // namespace
}  // namespace cermet
