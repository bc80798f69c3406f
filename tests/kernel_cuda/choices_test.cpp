// Which kernel, and which of its programs, every call of the GPU suite gets on a GPU like an H200, where the recorded results were measured. A model of
// costs may not move a choice away from what was measured to be the fastest.
#include <sstream>

#include "op/operator.hpp"
#include "op/type_text.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// A line of golden/suite_calls.txt: "w | linear(bf16[1, 4096], bf16[6144, 4096]) {out_dtype = ""}", names of constant operands first.
Problem parse_line(const std::string& line, const Target* target) {
  const std::size_t bar = line.find(" | ");
  const OperatorCall call = parse_call(line.substr(bar + 3));
  const OpDefinition& op = *find_operator(call.name);
  Problem problem = make_problem(op, call.inputs, call.attributes);
  std::istringstream names(line.substr(0, bar));
  for (std::string name; std::getline(names, name, ',');)
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i].name == name) problem.constant_inputs |= std::uint64_t{1} << i;
  problem.target = target;
  return problem;
}

TEST(Choices, TheSuiteRunsWhatWasMeasured) {
  const auto device = make_null_device(90);
  std::istringstream calls(read_file(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/kernel_cuda/golden/suite_calls.txt"));
  std::string text;
  for (std::string line; std::getline(calls, line);) {
    const Problem problem = parse_line(line, device->target());
    const auto [kernel, config] = select_kernel(problem);
    NullLaunches null(problem, *kernel, config);
    text += fmt::format("{}\n  {}, {}: {}\n", line, kernel->name, config.to_string(),
                        launches_text(null.launch(null.inputs(), null.outputs()), kernel->programs(problem, config)));
  }
  expect_golden("kernel_cuda/golden/choices.txt", text);
}

}  // namespace
}  // namespace cermet
