#include "runtime/planned_launch.hpp"

#include "runtime/overlap.hpp"

namespace cermet {
namespace {

std::int64_t total(std::span<const ByteRange> ranges) {
  std::int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.bytes;
  return bytes;
}

std::string program_of(const Launch& launch, const StepInfo& step) {
  switch (launch.kind) {
    case Launch::Kind::program:
    case Launch::Kind::function: return step.programs[launch.program];
    case Launch::Kind::fill: return "fill";
    case Launch::Kind::product: return "vendor product";
    case Launch::Kind::call: break;
  }
  return "";
}

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
    planned.is_function = launch.kind == Launch::Kind::function;
    planned.items = launch.items;
    if (planned.is_program || planned.is_function) {
      const LaunchShape& shape = launch.shape;
      planned.blocks = std::int64_t{shape.blocks} * shape.blocks_y * shape.blocks_z;
      planned.threads = std::int64_t{shape.threads} * shape.threads_y * shape.threads_z;
      planned.shared_bytes = launch.shape.shared_bytes;
      planned.parameter_bytes = static_cast<std::int64_t>(plan.parameters(launch).size());
    }
    planned.read_bytes = total(plan.reads(launch));
    planned.written_bytes = total(plan.writes(launch));
    for (const ByteRange& range : plan.reads(launch))
      if (range.early) planned.early_bytes += range.bytes;
    if (!first) continue;
    planned.work = executable.work(launch.step);
    if (limits) planned.time = modelled_time(step.region.problem(), *planned.work, *limits);
  }
  for (const LaunchOrder& pair : dependencies_of(plan)) list[pair.after].follows.push_back(pair.before);
  return list;
}

}  // namespace cermet
