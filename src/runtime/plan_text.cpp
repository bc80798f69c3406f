#include "runtime/plan_text.hpp"

#include "runtime/table.hpp"

namespace cermet {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string count(bool applies, std::int64_t value) { return applies ? std::to_string(value) : "-"; }

}  // namespace

std::string plan_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps) {
  std::vector<TableRow> rows{{"launch", "scope", "kernel", "program", "items", "blocks", "threads", "shared",
                              "parameters", "reads", "writes", "operations", "microseconds", "follows"}};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PlannedLaunch& launch = launches[i];
    const StepInfo& step = steps[launch.step];
    const bool has_blocks = launch.is_program || launch.is_function;
    rows.push_back({std::to_string(i), or_dash(step.scope), step.kernel, or_dash(launch.program),
                    count(launch.is_program, launch.items), count(has_blocks, launch.blocks),
                    count(has_blocks, launch.threads), count(has_blocks, launch.shared_bytes),
                    count(has_blocks, launch.parameter_bytes), std::to_string(launch.read_bytes),
                    std::to_string(launch.written_bytes), launch.work ? scaled_text(launch.work->operations) : "-",
                    launch.time ? fmt::format("{:.2f}", 1e6 * launch.time->seconds()) : "-",
                    launch.follows.empty() ? "-" : fmt::format("{}", fmt::join(launch.follows, ","))});
  }
  return table_text(rows, 4);
}

}  // namespace cermet
