// What every operator's definition must satisfy.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "op/schema/operator.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

class Schema : public testing::TestWithParam<const OpDefinition*> {};

bool is_sentence(std::string_view text) {
  return !text.empty() && text.front() != ' ' && text.find("  ") == std::string_view::npos;
}

TEST_P(Schema, IsDocumented) {
  const OpDefinition& op = *GetParam();
  EXPECT_TRUE(is_sentence(op.category));
  EXPECT_TRUE(is_sentence(op.summary));
  EXPECT_TRUE(is_sentence(op.semantics));
  for (const auto* operands : {&op.inputs, &op.outputs})
    for (const OperandSpec& operand : *operands) {
      EXPECT_TRUE(is_sentence(operand.doc)) << operand.name;
      EXPECT_NE(operand.shape, "") << operand.name;
      EXPECT_NE(operand.dtypes.to_string(), "") << operand.name;
    }
  for (const AttributeSpec& attribute : op.attributes) EXPECT_TRUE(is_sentence(attribute.doc)) << attribute.name;
}

TEST_P(Schema, NamesAreUnique) {
  const OpDefinition& op = *GetParam();
  std::set<std::string_view> inputs, outputs,
      attributes;  // a result may have an operand's name: a cache that is updated has
  for (const OperandSpec& operand : op.inputs) EXPECT_TRUE(inputs.insert(operand.name).second) << operand.name;
  for (const OperandSpec& operand : op.outputs) EXPECT_TRUE(outputs.insert(operand.name).second) << operand.name;
  for (const AttributeSpec& attribute : op.attributes)
    EXPECT_TRUE(attributes.insert(attribute.name).second) << attribute.name;
}

TEST_P(Schema, OperandsAreWellFormed) {
  const OpDefinition& op = *GetParam();
  ASSERT_FALSE(op.outputs.empty());
  for (const auto* operands : {&op.inputs, &op.outputs})
    for (std::size_t i = 0; i + 1 < operands->size(); ++i)
      EXPECT_FALSE((*operands)[i].variadic) << "only the last may be variadic";
  EXPECT_LE(op.aliases.size(), op.outputs.size());
  EXPECT_LE(op.in_place.size(), op.outputs.size());
  for (const auto* shared : {&op.aliases, &op.in_place})
    for (const int input : *shared) EXPECT_TRUE(input >= -1 && input < static_cast<int>(op.inputs.size()));
  if (op.is_view) {
    EXPECT_EQ(op.inputs.size(), 1u);
  }
}

TEST_P(Schema, ChoicesHoldTheDefault) {
  for (const AttributeSpec& attribute : GetParam()->attributes) {
    if (attribute.choices.empty()) continue;
    ASSERT_TRUE(std::holds_alternative<std::string>(attribute.fallback)) << attribute.name;
    const auto& fallback = std::get<std::string>(attribute.fallback);
    EXPECT_NE(std::find(attribute.choices.begin(), attribute.choices.end(), fallback), attribute.choices.end())
        << attribute.name;
  }
}

TEST_P(Schema, CasesAreValidProblems) {
  const OpDefinition& op = *GetParam();
  std::set<std::string> names;
  const std::vector<Case> cases = op.cases();
  EXPECT_FALSE(cases.empty());
  for (const Case& test_case : cases) {
    EXPECT_TRUE(names.insert(test_case.name).second) << test_case.name << " occurs twice";
    std::vector<std::optional<TensorType>> types;
    for (const auto& operand : test_case.inputs) types.push_back(operand ? std::optional(operand->type) : std::nullopt);
    const Problem problem = make_problem(op, types, test_case.attributes);
    ASSERT_FALSE(problem.outputs.empty()) << test_case.name;
    EXPECT_TRUE(op.outputs.back().variadic || problem.outputs.size() <= op.outputs.size()) << test_case.name;
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      const OperandSpec& spec = op.outputs[std::min(o, op.outputs.size() - 1)];
      EXPECT_TRUE(spec.dtypes.contains(problem.outputs[o].dtype))
          << test_case.name << ": " << spec.name << " is " << problem.outputs[o].to_string();
    }
    const Cost cost = cost_of(problem);
    EXPECT_TRUE(std::isfinite(cost.operations) && cost.operations >= 0) << test_case.name;
    EXPECT_TRUE(std::isfinite(cost.bytes) && cost.bytes >= 0) << test_case.name;
    if (op.rounding_depth) {
      EXPECT_TRUE(op.rounding_depth(problem) >= 0 && std::isfinite(op.rounding_depth(problem))) << test_case.name;
    }
  }
}

TEST_P(Schema, IsFoundByNameAndKind) {
  EXPECT_EQ(find_operator(GetParam()->name), GetParam());
  EXPECT_EQ(&definition(GetParam()->kind), GetParam());
}

TEST(Schema, UnknownNamesAreNotFound) {
  EXPECT_EQ(find_operator("no_such_operator"), nullptr);
  EXPECT_EQ(find_operator(""), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Operators, Schema, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
