// Which kernel, and which of its programs, every call of the GPU suite gets on a GPU like an H200, where the recorded
// results were measured. A model of costs may not move a choice away from what was measured to be the fastest.
#include <sstream>

#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// A line of golden/suite_calls.txt: "w | linear(bf16[1, 4096], bf16[6144, 4096]) {out_dtype = ""}", names of constant
/// operands first.
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

/// Every line with what is chosen for it on the device.
std::string choices_on(const Target* target) {
  std::istringstream calls(
      read_text(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/kernel_cuda/golden/suite_calls.txt"));
  std::string text;
  for (std::string line; std::getline(calls, line);) {
    const Problem problem = parse_line(line, target);
    const auto [kernel, config] = select_kernel(problem);
    NullLaunches null(problem, *kernel, config);
    text += fmt::format("{}\n  {}, {}: {}\n", line, kernel->name, config.to_string(),
                        launches_text(null.launch(null.inputs(), null.outputs()), kernel->programs(problem, config)));
  }
  return text;
}

TEST(Choices, TheSuiteRunsWhatWasMeasured) {
  expect_golden("kernel_cuda/golden/choices.txt", choices_on(make_null_device(90)->target()));
}

/// Choices are those of the data sheet where the limits are measured: those of the H200's record, and as much higher or
/// lower as measurements scatter.
TEST(Choices, MeasuredLimitsDoNotMoveThem) {
  const auto device = make_null_device(90);
  const std::string sheet = choices_on(device->target());
  for (const double scatter : {0.97, 1.0, 1.03}) {
    device->set_measured(
        std::make_shared<const DeviceLimits>(DeviceLimits{.source = "measured",
                                                          .read_bytes_per_second = scatter * 4.615e12,
                                                          .launch_seconds = 6.0e-7,
                                                          .f32_operations_per_second = scatter * 65.2e12,
                                                          .f16_operations_per_second = scatter * 857.3e12,
                                                          .bf16_operations_per_second = scatter * 864.4e12,
                                                          .f8_operations_per_second = scatter * 1715.6e12,
                                                          .i8_operations_per_second = scatter * 1876.2e12}));
    EXPECT_EQ(choices_on(device->target()), sheet) << scatter;
  }
}

}  // namespace
}  // namespace cermet
