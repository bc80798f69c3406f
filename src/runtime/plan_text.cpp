#include "runtime/plan_text.hpp"

#include "runtime/table.hpp"

namespace cermet {
namespace {

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

std::string dependency_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps) {
  const auto name = [&](std::size_t i) { return fmt::format("{} {}", i, steps[launches[i].step].kernel); };
  std::vector<TableRow> rows{{"after", "before", "items", "waits for", "each needs", "at 1/4", "at 1/2", "at 3/4",
                              "early bytes", "for example"}};
  for (std::size_t i = 0; i < launches.size(); ++i)
    for (std::size_t f = 0; f < launches[i].follows.size(); ++f) {
      const ItemDependency& d = launches[i].needs[f];
      const std::string least = d.least < d.most ? fmt::format("{} to ", d.least) : "";
      TableRow row{name(i), name(launches[i].follows[f]), std::to_string(d.items), name_of(d.what),
                   fmt::format("{}{} of {}", least, d.most, d.earlier)};
      for (int quarter = 1; quarter < 4; ++quarter) row.push_back(std::to_string(d.may_start(d.earlier * quarter / 4)));
      row.push_back(std::to_string(launches[i].early_bytes));
      row.push_back(example_of(d));
      rows.push_back(std::move(row));
    }
  return table_text(rows, 2);
}

}  // namespace cermet
