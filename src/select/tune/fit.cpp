#include "select/tune/fit.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "kernel/decline.hpp"
#include "op/schema/region_text.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

constexpr std::size_t fewest_regions = 3;

/// log(measured / modelled) of a kernel, by region.
using Ratios = std::map<std::size_t, std::vector<double>>;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// All of some regions: those of both halves, or of one.
std::vector<double> ratios_of(const Ratios& ratios, std::optional<bool> half) {
  std::vector<double> all;
  bool even = true;
  for (const auto& [region, own] : ratios) {
    if (!half || *half == even) all.insert(all.end(), own.begin(), own.end());
    even = !even;
  }
  return all;
}

/// Mean distance, which the median makes least.
double error_of(const std::vector<double>& ratios, double log_factor) {
  double sum = 0;
  for (const double ratio : ratios) sum += std::abs(ratio - log_factor);
  return ratios.empty() ? 0 : sum / static_cast<double>(ratios.size());
}

CostFit fit_of(const std::string& kernel, const Ratios& ratios) {
  const std::vector<double> all = ratios_of(ratios, std::nullopt), even = ratios_of(ratios, true),
                            odd = ratios_of(ratios, false);
  const double center = median(all);
  const double held_out = (error_of(even, median(odd)) + error_of(odd, median(even))) / 2;
  return {kernel, all.size(), ratios.size(), std::exp(center), error_of(all, 0), error_of(all, center), held_out};
}

std::int64_t number_after(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(),
          "tuned region: expected a number at the end of \"{}\"", text);
  return value;
}

}  // namespace

Region region_of_tuning_text(std::string_view text, const Target* target) {
  std::vector<std::size_t> constants;
  SymbolValues maximum;
  for (std::size_t at = text.rfind("; "); at != std::string_view::npos; at = text.rfind("; ")) {
    const std::string_view part = text.substr(at + 2);
    constexpr std::string_view constant = "constant $", below = " <= ";
    if (part.starts_with(constant)) constants.push_back(static_cast<std::size_t>(number_after(part, constant.size())));
    else if (const std::size_t is_below = part.find(below);
             part.starts_with("s") && is_below != std::string_view::npos && part.find('(') == std::string_view::npos)
      maximum.set(Symbol(std::string(part.substr(0, is_below))), number_after(part, is_below + below.size()));
    else break;
    text = text.substr(0, at);
  }
  Region region = parse_region(text);
  for (const std::size_t operand : constants) {
    require(operand < region.operands.size(), "tuned region: expected at most {} operands, found constant ${}",
            region.operands.size(), operand);
    for (std::size_t n = 0; n < region.nodes.size(); ++n)
      for (std::size_t i = 0; i < std::min<std::size_t>(region.nodes[n].inputs.size(), 64); ++i)
        if (region.operand_of(n, i) == operand) region.nodes[n].problem.constant_inputs |= std::uint64_t{1} << i;
  }
  region.set_maximum(maximum);
  region.set_target(target);
  return region;
}

std::vector<CostFit> fit_costs(std::span<const TuningEntry> entries, const Target* target) {
  std::map<std::string, Ratios> ratios;
  const DeviceLimits limits = limits_of(target);
  for (std::size_t e = 0; e < entries.size(); ++e) try {
      const Region region = region_of_tuning_text(entries[e].key.region, target);
      const Selection selection = explain_selection(region, {.tuned = false});
      const auto add = [&](const std::string& name, const std::string& config, double seconds) {
        const auto found =
            std::ranges::find_if(selection.candidates, [&](const Candidate& c) { return c.kernel->name == name; });
        if (found == selection.candidates.end() || found->decline || !found->kernel->cost) return;
        Config own = parse_config(config), kept;
        for (const auto& [field, value] : own.fields())
          if (field != threads_field) kept.set(field, value);
        if (const double modelled = found->kernel->cost(region, kept, limits); modelled > 0 && seconds > 0)
          ratios[name][e].push_back(std::log(seconds / modelled));
      };
      add(entries[e].kernel, entries[e].config, entries[e].seconds);
      for (const TunedRival& rival : entries[e].rivals) add(rival.kernel, rival.config, rival.seconds);
    } catch (const Error&) {  // of another release: another operator, or another form
    }
  std::vector<CostFit> fits;
  for (const auto& [kernel, of] : ratios)
    if (of.size() >= fewest_regions) fits.push_back(fit_of(kernel, of));
  return fits;
}

}  // namespace cermet
