#include "runtime/explain.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

#include "runtime/table.hpp"

namespace cermet {
namespace {

std::string rate(double work, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", work / seconds / 1e9) : "-";
}

std::string operand_types(const Region& region) {
  std::string text;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i)) text += fmt::format("{}{}", text.empty() ? "" : ", ", region.operand_type(i).to_string());
  return text;
}

const TableRow time_columns{"ms", "%", "GB/s", "Gop/s"};

/// Milliseconds of one run of the graph, in which the kernel is launched `launches` times; share of the whole; rates.
void append_times(TableRow& row, double seconds, std::int64_t runs, std::int64_t launches, double total,
                  const Cost& work) {
  const double per_run = runs > 0 ? seconds / static_cast<double>(runs) * static_cast<double>(launches) : 0;
  row.insert(row.end(),
             {runs > 0 ? fmt::format("{:.3f}", 1e3 * per_run) : "-", fmt::format("{:.1f}", 100 * seconds / total),
              rate(work.bytes, seconds), rate(work.operations, seconds)});
}

/// "units+panels": the packed layouts of a step's weights; empty where all are row-major.
std::string layout_text(const StepInfo& step) {
  std::vector<std::string_view> names;
  for (const WeightLayout* const layout : step.layouts)
    if (layout && std::ranges::find(names, layout->name) == names.end()) names.push_back(layout->name);
  return fmt::format("{}", fmt::join(names, "+"));
}

}  // namespace

std::vector<KernelUse> kernels_used(std::span<const StepInfo> steps) {
  std::map<std::tuple<std::string, std::string>, KernelUse> by_kernel;
  for (const StepInfo& step : steps) {
    const std::string layout = layout_text(step);
    KernelUse& use = by_kernel[{step.kernel, layout}];
    use.kernel = step.kernel;
    use.op = step.region.operators();
    use.layout = layout;
    ++use.launches;
    use.runs += step.runs;
    use.seconds += step.seconds;
    use.work.operations += step.work.operations;
    use.work.bytes += step.work.bytes;
  }
  std::vector<KernelUse> list;
  for (auto& [key, use] : by_kernel) list.push_back(std::move(use));
  std::stable_sort(list.begin(), list.end(), [](const KernelUse& a, const KernelUse& b) {
    return std::tuple(a.seconds, a.launches) > std::tuple(b.seconds, b.launches);
  });
  return list;
}

std::string kernel_table(std::span<const KernelUse> kernels) {
  double total = 0;
  for (const KernelUse& use : kernels) total += use.seconds;
  std::vector<TableRow> rows{{"operator", "kernel", "weights", "launches"}};
  if (total > 0) rows[0].insert(rows[0].end(), time_columns.begin(), time_columns.end());
  for (const KernelUse& use : kernels) {
    TableRow row{use.op, use.kernel, use.layout.empty() ? "-" : use.layout, std::to_string(use.launches)};
    if (total > 0) append_times(row, use.seconds, use.runs, use.launches, total, use.work);
    rows.push_back(std::move(row));
  }
  return table_text(rows, 3);
}

std::string explain(std::span<const StepInfo> steps) {
  double total = 0;
  for (const StepInfo& step : steps) total += step.seconds;
  std::vector<TableRow> rows{{"step", "scope", "operator", "operands", "kernel", "weights", "bytes", "operations"}};
  if (total > 0) rows[0].insert(rows[0].end(), time_columns.begin(), time_columns.end());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepInfo& step = steps[i];
    const double runs = static_cast<double>(step.runs);
    const std::string layout = layout_text(step);
    const Cost work = step.runs > 0 ? Cost{step.work.operations / runs, step.work.bytes / runs} : cost_of(step.region);
    TableRow row{std::to_string(i),
                 step.scope.empty() ? "-" : step.scope,
                 step.region.operators(),
                 operand_types(step.region),
                 step.kernel,
                 layout.empty() ? "-" : layout,
                 scaled_text(work.bytes),
                 scaled_text(work.operations)};
    if (total > 0) append_times(row, step.seconds, step.runs, 1, total, step.work);
    rows.push_back(std::move(row));
  }
  return table_text(rows, 6);
}

}  // namespace cermet
