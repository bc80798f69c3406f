// What calls of operators give, or why they are rejected: tests/op/calls.txt holds calls with the types of their
// results, their cost and the depth of their error bound, or the message, below each. Both sides of every limit are
// there, so that one which moves by one is seen. CERMET_APPROVE=1 fills in what is below a new call.
#include <set>
#include <sstream>

#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// Cost and error bound of a problem whose dimensions are known.
std::string cost(const Problem& problem) {
  for (const auto& input : problem.inputs)
    if (input && !input->is_constant()) return "";
  const Cost cost = cost_of(problem);
  const OpDefinition& op = definition(problem);
  const double depth = op.rounding_depth ? op.rounding_depth(problem) : op.operations ? -1 : 0;
  return fmt::format("; {} operations, {} bytes, depth {}", cost.operations, cost.bytes, depth);
}

/// What a call gives, or the message.
std::string answer(const std::string& text) {
  OperatorCall call = parse_call(text);
  const OpDefinition* op = find_operator(call.name);
  if (!op) return "no operator " + call.name;
  try {
    const Problem problem = make_problem(*op, std::move(call.inputs), call.attributes);
    std::string types = "->";
    for (const TensorType& type : problem.outputs) types += " " + type.to_string();
    return types + cost(problem);
  } catch (const Error& error) {
    EXPECT_TRUE(error.status() == Status::invalid_argument || error.status() == Status::unsupported)
        << text << ": " << status_name(error.status());
    return error.what();
  }
}

TEST(Calls, GiveTheseTypesOrMessages) {
  std::istringstream file(read_text(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/op/calls.txt"));
  std::string text;
  std::set<std::string, std::less<>> accepted;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("  ")) continue;
    const std::string found = answer(line);
    if (found.starts_with("->")) accepted.insert(parse_call(line).name);
    text += line + "\n  " + found + "\n";
  }
  expect_golden("op/calls.txt", text);
  for (const OpDefinition& op : all_operators())
    EXPECT_TRUE(accepted.contains(op.name)) << op.name << ": no call of it in tests/op/calls.txt is accepted";
}

}  // namespace
}  // namespace cermet
