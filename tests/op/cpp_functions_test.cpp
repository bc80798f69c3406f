// The generated C++ functions say all that the schemas say. That they compile and compute,
// tests/api/short_form_test.cpp shows.
#include "op/schema/cpp_functions.hpp"

#include <gtest/gtest.h>

#include "op/schema/operator.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

class CppFunction : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(CppFunction, HasEveryOperandAttributeAndResult) {
  const OpDefinition& op = *GetParam();
  const std::string text = cpp_function(op), function = text.substr(text.find("\ninline "));
  EXPECT_NE(cpp_functions_header().find(text), std::string::npos);
  EXPECT_NE(function.find(fmt::format(" {}(", op.name)), std::string::npos) << function;
  std::size_t last = 0;
  for (const OperandSpec& spec : op.inputs) {
    EXPECT_EQ(
        text.find(fmt::format("  tensor {} = {{}};\n", spec.name)) != std::string::npos,
        spec.optional || (op.outputs.size() > 1 && std::ranges::count(op.outputs, spec.name, &OperandSpec::name) > 0))
        << spec.name;
    const std::size_t at =
        function.find(fmt::format("operands.add({}{});", spec.optional ? "options." : "", spec.name));
    EXPECT_LT(last, at) << spec.name << ": operands are passed in the schema's order";
    ASSERT_NE(at, std::string::npos) << spec.name;
    last = at;
  }
  for (const AttributeSpec& spec : op.attributes) {
    EXPECT_NE(text.find(fmt::format(" {} = ", spec.name)), std::string::npos) << spec.name;
    EXPECT_NE(function.find(fmt::format("face::value(\"{}\", ", spec.name)), std::string::npos) << spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CppFunction, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
