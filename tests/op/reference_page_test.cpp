#include "op/schema/reference_page.hpp"

#include <gtest/gtest.h>

#include "op/schema/operator.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

TEST(ReferencePage, IsUpToDate) { expect_golden("../docs/reference/operators.md", operator_reference_markdown()); }

TEST(ReferencePage, DescribesEveryOperator) {
  const std::string page = operator_reference_markdown();
  for (const OpDefinition& op : all_operators())
    EXPECT_NE(page.find(fmt::format("\n### {}\n", op.name)), std::string::npos) << op.name;
}

}  // namespace
}  // namespace cermet
