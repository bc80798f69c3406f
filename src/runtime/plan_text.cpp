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
    case Launch::Kind::program:
    case Launch::Kind::function: return step.programs[launch.program];
    case Launch::Kind::fill: return "fill";
    case Launch::Kind::product: return "vendor product";
    case Launch::Kind::call: break;
  }
  return "";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string count(bool applies, std::int64_t value) { return applies ? std::to_string(value) : "-"; }

/// "3: 0-7, 16-23": what an item needs, where that is not everything.
std::string example_of(const ItemDependency& d) {
  if (d.what == WaitsFor::all || d.middle.empty()) return "-";
  constexpr std::size_t most = 3;
  std::string text = fmt::format("{}:", d.items / 2);
  for (std::size_t i = 0; i < std::min(most, d.middle.size()); ++i) {
    const ItemRange& range = d.middle[i];
    text += range.count() == 1 ? fmt::format(" {}", range.first) : fmt::format(" {}-{}", range.first, range.end - 1);
  }
  if (d.middle.size() > most) text += " ...";
  return text;
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
  for (const LaunchOrder& pair : dependencies_of(plan)) {
    list[pair.after].follows.push_back(pair.before);
    list[pair.after].needs.push_back(item_dependency(plan, pair.before, pair.after));
  }
  return list;
}

std::string plan_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps) {
  std::vector<TableRow> rows{{"launch", "scope", "kernel", "program", "items", "blocks", "threads", "shared", "parameters", "reads", "writes", "operations",
                              "microseconds", "follows"}};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PlannedLaunch& launch = launches[i];
    const StepInfo& step = steps[launch.step];
    const bool has_blocks = launch.is_program || launch.is_function;
    rows.push_back({std::to_string(i), or_dash(step.scope), step.kernel, or_dash(launch.program), count(launch.is_program, launch.items),
                    count(has_blocks, launch.blocks), count(has_blocks, launch.threads), count(has_blocks, launch.shared_bytes),
                    count(has_blocks, launch.parameter_bytes), std::to_string(launch.read_bytes), std::to_string(launch.written_bytes),
                    launch.work ? scaled_text(launch.work->operations) : "-", launch.time ? fmt::format("{:.2f}", 1e6 * launch.time->seconds()) : "-",
                    launch.follows.empty() ? "-" : fmt::format("{}", fmt::join(launch.follows, ","))});
  }
  return table_text(rows, 4);
}

std::string dependency_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps) {
  const auto name = [&](std::size_t i) { return fmt::format("{} {}", i, steps[launches[i].step].kernel); };
  std::vector<TableRow> rows{{"after", "before", "items", "waits for", "each needs", "at 1/4", "at 1/2", "at 3/4", "early bytes", "for example"}};
  for (std::size_t i = 0; i < launches.size(); ++i)
    for (std::size_t f = 0; f < launches[i].follows.size(); ++f) {
      const ItemDependency& d = launches[i].needs[f];
      const std::string least = d.least < d.most ? fmt::format("{} to ", d.least) : "";
      TableRow row{name(i), name(launches[i].follows[f]), std::to_string(d.items), name_of(d.what), fmt::format("{}{} of {}", least, d.most, d.earlier)};
      for (int quarter = 1; quarter < 4; ++quarter) row.push_back(std::to_string(d.may_start(d.earlier * quarter / 4)));
      row.push_back(std::to_string(launches[i].early_bytes));
      row.push_back(example_of(d));
      rows.push_back(std::move(row));
    }
  return table_text(rows, 2);
}

}  // namespace cermet
