#include "runtime/plan_text.hpp"

#include "runtime/overlap.hpp"
#include "runtime/table.hpp"

namespace cermet {
namespace {

std::int64_t total(std::span<const ByteRange> ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

std::string program_of(const Launch& launch, const StepInfo& step) {
  switch (launch.kind) {
    case Launch::Kind::program: return step.programs[launch.program];
    case Launch::Kind::fill: return "fill";
    case Launch::Kind::product: return "vendor product";
    case Launch::Kind::call: break;
  }
  return "";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string count(bool applies, std::int64_t value) { return applies ? std::to_string(value) : "-"; }

}  // namespace

std::vector<PlannedLaunch> planned_launches(Executable& executable, const DeviceLimits* limits) {
  const Plan& plan = executable.plan();
  std::vector<PlannedLaunch> list;
  for (const Launch& launch : plan.launches()) {
    const StepInfo& step = executable.steps()[launch.step];
    PlannedLaunch& planned = list.emplace_back();
    const bool first = list.size() == 1 || list[list.size() - 2].step != launch.step;
    planned.step = launch.step;
    planned.program = program_of(launch, step);
    planned.is_program = launch.kind == Launch::Kind::program;
    planned.is_linkable = launch.is_linkable();
    planned.is_fallback = launch.fallback;
    if (planned.is_program) {
      planned.items = launch.items;
      planned.blocks = launch.shape.blocks;
      planned.threads = launch.shape.threads;
      planned.shared_bytes = launch.shape.shared_bytes;
      planned.parameter_bytes = static_cast<std::int64_t>(plan.parameters(launch).size());
    }
    planned.read_bytes = total(plan.reads(launch));
    planned.written_bytes = total(plan.writes(launch));
    if (!first) continue;
    planned.work = executable.work(launch.step);
    if (limits) planned.time = modelled_time(step.region.problem(), *planned.work, *limits);
  }
  for (const LaunchOrder& pair : dependencies_of(plan)) list[pair.after].follows.push_back(pair.before);
  return list;
}

std::string plan_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps) {
  std::vector<TableRow> rows{{"launch", "scope", "kernel", "program", "items", "blocks", "threads", "shared", "parameters", "reads", "writes", "operations",
                              "microseconds", "follows"}};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PlannedLaunch& launch = launches[i];
    const StepInfo& step = steps[launch.step];
    rows.push_back({std::to_string(i), or_dash(step.scope), step.kernel, or_dash(launch.program), count(launch.is_program, launch.items),
                    count(launch.is_program, launch.blocks), count(launch.is_program, launch.threads), count(launch.is_program, launch.shared_bytes),
                    count(launch.is_program, launch.parameter_bytes), std::to_string(launch.read_bytes), std::to_string(launch.written_bytes),
                    launch.work ? scaled_text(launch.work->operations) : "-", launch.time ? fmt::format("{:.2f}", 1e6 * launch.time->seconds()) : "-",
                    launch.follows.empty() ? "-" : fmt::format("{}", fmt::join(launch.follows, ","))});
  }
  return table_text(rows, 4);
}

}  // namespace cermet
