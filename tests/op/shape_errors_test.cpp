// What shape inference says of operands that do not fit: every operand that it names is one of the operator's.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

bool is_name_of(const OpDefinition& op, const std::string& word) {
  const auto named = [&](const auto& spec) { return spec.name == word; };
  return std::ranges::any_of(op.inputs, named) || std::ranges::any_of(op.outputs, named) ||
         std::ranges::any_of(op.attributes, named);
}

/// Words after "of", which stand for an operand or a result ("K of x"), but for a few: "that of a square matrix".
std::vector<std::string> operands_in(const std::string& message) {
  static const std::regex meaning(R"(\(([^()]*)\))"), operand(R"(\bof (the )?([A-Za-z_0-9]+))");
  static const std::vector<std::string> others{"1", "a", "all", "an", "first", "groups", "it", "result"};
  std::vector<std::string> words;
  for (std::sregex_iterator m(message.begin(), message.end(), meaning), end; m != end; ++m) {
    const std::string text = (*m)[1];
    for (std::sregex_iterator o(text.begin(), text.end(), operand); o != end; ++o)
      if (std::ranges::find(others, std::string((*o)[2])) == others.end()) words.push_back((*o)[2]);
  }
  return words;
}

/// The operand with a dimension that is longer, one that is missing, or one too many; or of another type.
std::vector<TensorType> bent(const TensorType& type) {
  std::vector<TensorType> list;
  for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
    TensorType longer = type, shorter = type;
    longer.dims[axis] = longer.dims[axis] + 1;
    shorter.dims.erase(shorter.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    list.insert(list.end(), {longer, shorter});
  }
  TensorType deeper = type, other = type;
  deeper.dims.insert(deeper.dims.begin(), Dim(2));
  other.dtype = type.dtype == DType::f16 ? DType::f32 : DType::f16;
  list.insert(list.end(), {deeper, other});
  return list;
}

class ShapeErrors : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(ShapeErrors, NameOperandsOfTheOperator) {
  const OpDefinition& op = *GetParam();
  for (const Case& test_case : op.cases()) {
    std::vector<std::optional<TensorType>> types;
    for (const auto& operand : test_case.inputs) types.push_back(operand ? std::optional(operand->type) : std::nullopt);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!types[i]) continue;
      for (const TensorType& type : bent(*types[i])) {
        auto changed = types;
        changed[i] = type;
        try {
          make_problem(op, std::move(changed), test_case.attributes);
        } catch (const Error& error) {
          const std::string message = error.what();
          EXPECT_EQ(message.find(op.name), 0u) << message;
          for (const std::string& word : operands_in(message))
            EXPECT_TRUE(is_name_of(op, word)) << word << ": " << message;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, ShapeErrors, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
