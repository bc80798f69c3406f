#include "cli/bench/call_plot.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "kernel/roofline.hpp"
#include "select/measured_choice.hpp"
#include "select/select.hpp"

namespace cermet::cli {
namespace {

Symbol plotted_symbol(const Region& region) {
  std::set<Symbol> symbols;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i))
      for (const Dim& dim : region.operand_type(i).dims)
        for (const Symbol& symbol : dim.symbols()) symbols.insert(symbol);
  require(symbols.size() == 1,
          "-o: expected a call with one symbolic dimension to plot over, such as T, found {} in {}", symbols.size(),
          region.to_string());
  return *symbols.begin();
}

/// 1, 2, 4, ... and `most`.
std::vector<std::int64_t> plotted_sizes(std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size < most; size *= 2) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

/// Adds what is modelled and measured of the candidates at a size to their lines.
void add_size(std::vector<PlotLine>& lines, const Selection& selection, std::int64_t size) {
  const TuningEntry* const entry = measured_entry(selection);
  for (const Candidate& candidate : selection.candidates) {
    if (candidate.decline) continue;
    const std::string& name = candidate.kernel->name;
    if (std::ranges::find(lines, name, &PlotLine::name) == lines.end()) lines.push_back({name, {}, {}});
    PlotLine& line = *std::ranges::find(lines, name, &PlotLine::name);
    double modelled = 0, measured = 0;
    const auto keep_least = [](double& least, double seconds) {
      least = seconds > 0 && (least == 0 || seconds < least) ? seconds : least;
    };
    for (const ConfigCost& cost : candidate.configs) keep_least(modelled, cost.seconds);
    if (entry && entry->kernel == name) keep_least(measured, entry->seconds);
    if (entry)
      for (const TunedRival& rival : entry->rivals)
        if (rival.kernel == name) keep_least(measured, rival.seconds);
    if (modelled > 0) line.points.emplace_back(size, modelled);
    if (measured > 0) line.marks.emplace_back(size, measured);
  }
}

}  // namespace

double limit_seconds(const Region& region, const DeviceLimits& limits) {
  DType type = region.result_type(0).dtype;
  for (std::size_t i = 0; i < region.problem().inputs.size(); ++i)
    if (region.problem().has(i)) {
      type = region.problem().input(i).dtype;
      break;
    }
  return roofline_seconds(region, limits.operations_per_second(type), limits);
}

LinePlot plot_of_call(Region region, int threads, const DeviceLimits& limits) {
  const Symbol symbol = plotted_symbol(region);
  LinePlot plot{
      region.to_string(), fmt::format("{}; time of one launch as modelled, dots as measured", symbol.name()), {}};
  PlotLine limit{fmt::format("limit: {}", limits.source), {}, {}, true};
  for (const std::int64_t size : plotted_sizes(region.maximum()[symbol])) {
    SymbolValues maximum;
    maximum.set(symbol, size);
    region.set_maximum(maximum);
    add_size(plot.lines, explain_selection(region, {.threads = threads}), size);
    if (const double seconds = limit_seconds(region, limits); seconds > 0) limit.points.emplace_back(size, seconds);
  }
  std::erase_if(plot.lines, [](const PlotLine& line) { return line.points.empty() && line.marks.empty(); });
  require(!plot.lines.empty(), "-o: expected a kernel with a model or a measured time, found none for {}",
          region.to_string());
  plot.lines.push_back(std::move(limit));
  return plot;
}

}  // namespace cermet::cli
