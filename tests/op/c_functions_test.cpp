// The generated C functions say all that the schemas say. That they compile and compute, tests/api/c_face_test.cpp and
// the installed header's consumer show.
#include "op/schema/c_functions.hpp"

#include <gtest/gtest.h>

#include "tests/support/every_operator.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

class CFunction : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(CFunction, HasEveryOperandAndAttribute) {
  const OpDefinition& op = *GetParam();
  const std::string text = c_function(op);
  EXPECT_NE(c_functions_header().find(text), std::string::npos);
  std::size_t last = 0;
  for (const OperandSpec& spec : op.inputs) {
    const std::size_t at = text.find(fmt::format("cermet_descriptor{} {};", spec.variadic ? "*" : "", spec.name));
    ASSERT_NE(at, std::string::npos) << spec.name;
    EXPECT_LT(last, at) << spec.name << ": operands are in the schema's order";
    last = at;
  }
  for (const AttributeSpec& spec : op.attributes)
    EXPECT_NE(text.find(fmt::format("(\"{}\", args->{}", spec.name, spec.name)), std::string::npos) << spec.name;
  EXPECT_EQ(op.inputs.size() > 1 && op.inputs.back().variadic, false)
      << "the generated function passes a list of operands alone";
}

INSTANTIATE_TEST_SUITE_P(Operators, CFunction, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(CFunctions, OfScaledMm) { expect_golden("op/golden_c/scaled_mm.txt", c_function(definition(OpKind::scaled_mm))); }

}  // namespace
}  // namespace cermet
