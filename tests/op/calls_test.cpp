// What calls of operators give, or why they are refused: tests/op/calls.txt holds calls with the types of their results, or the message, below each.
// Both sides of every limit are there, so that one which moves by one is seen. CERMET_APPROVE=1 fills in what is below a new call.
#include <sstream>

#include "op/operator.hpp"
#include "op/type_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// Types of the results, or the message.
std::string answer(const std::string& text) {
  OperatorCall call = parse_call(text);
  const OpDefinition* op = find_operator(call.name);
  if (!op) return "no operator " + call.name;
  try {
    std::string types = "->";
    for (const TensorType& type : make_problem(*op, std::move(call.inputs), call.attributes).outputs) types += " " + type.to_string();
    return types;
  } catch (const Error& error) {
    EXPECT_TRUE(error.status() == Status::invalid_argument || error.status() == Status::unsupported) << text << ": " << status_name(error.status());
    return error.what();
  }
}

TEST(Calls, GiveTheseTypesOrMessages) {
  std::istringstream file(read_file(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/op/calls.txt"));
  std::string text;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("  ")) text += line + "\n  " + answer(line) + "\n";
  expect_golden("op/calls.txt", text);
}

}  // namespace
}  // namespace cermet
