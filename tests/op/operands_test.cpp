// op/operands.inc holds the names that schemas give to operands, in their order.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::vector<std::string> words_of(std::string text) {
  for (char& c : text)
    if (c == ',') c = ' ';
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

const std::map<std::string, std::vector<std::string>> rows{
#define OPERANDS(name, ...) {#name, words_of(#__VA_ARGS__)},
#include "op/operands.inc"
#undef OPERANDS
};

TEST(Operands, RowsAreTheSchemas) {
  for (const auto& [name, operands] : rows) {
    SCOPED_TRACE(name);
    std::vector<std::string> expected;
    for (const OpDefinition& op : all_operators())
      if (op.name == name)
        for (const OperandSpec& spec : op.inputs) expected.emplace_back(spec.name);
    EXPECT_EQ(operands, expected);
  }
}

TEST(Operands, EveryOperatorOfMoreThanTwoHasARow) {
  for (const OpDefinition& op : all_operators())
    EXPECT_EQ(rows.contains(std::string(op.name)), op.inputs.size() > 2) << op.name;
}

}  // namespace
}  // namespace cermet
