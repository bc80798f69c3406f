#include "select/select.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"
#include "select/forced.hpp"
#include "select/margin.hpp"

namespace cermet {
namespace {

std::span<const Kernel* const> kernels_for(OpKind anchor, const Target* target) { return target ? cuda::kernels_of(anchor) : cpu::kernels_of(anchor); }

std::span<const Kernel* const> kernels_for(const Region& region) {
  if (!region.target()) cpu::active_isa();
  if (!region.is_single()) verify(region);
  return kernels_for(region.problem().op->kind, region.target());
}

std::vector<ConfigCost> costs_of(const Kernel& kernel, const Region& region, const DeviceLimits& limits) {
  std::vector<ConfigCost> costs;
  for (Config& config : kernel.configs(region)) {
    const double seconds = kernel.cost ? kernel.cost(region, config, limits) : 0;
    costs.push_back({std::move(config), seconds});
  }
  CERMET_ASSERT(!costs.empty());
  return costs;
}

bool is_cheaper(double seconds, double than, double margin) { return seconds > 0 && than > 0 && seconds < than * (1 - margin); }

/// The first of those that are not clearly dearer than another.
const ConfigCost& cheapest(const std::vector<ConfigCost>& costs, double margin) {
  const ConfigCost* best = &costs.front();
  for (const ConfigCost& cost : costs)
    if (is_cheaper(cost.seconds, best->seconds, margin)) best = &cost;
  return *best;
}

std::string configs_text(const std::vector<ConfigCost>& costs) {
  std::string text;
  for (const ConfigCost& cost : costs) text += fmt::format("{}{}", text.empty() ? "" : "; ", cost.config.to_string());
  return text;
}

/// Throws unless some configuration has the field with this value.
void require_field(const Kernel& kernel, const std::vector<ConfigCost>& costs, const std::string& name, std::int64_t value, std::string_view source) {
  std::set<std::string> names;
  std::set<std::int64_t> values;
  for (const ConfigCost& cost : costs)
    for (const auto& [field, known] : cost.config.fields()) {
      names.insert(field);
      if (field == name) values.insert(known);
    }
  require(!names.empty(), "{}: {}: expected default, because it runs in one way here, found {}", source, kernel.name, quote(name));
  require(names.contains(name), "{}: {}: expected a field of {}, found {}", source, kernel.name, fmt::join(names, ", "), quote(name));
  require(values.contains(value), "{}: {}: {}: expected one of {}, found {}", source, kernel.name, name, fmt::join(values, ", "), value);
}

/// The first by cost of the kernel's configurations that have the fields of the text; `source` names who gave it.
Config wanted_config(const Kernel& kernel, const std::vector<ConfigCost>& costs, double margin, std::string_view text, std::string_view source) {
  const Config wanted = parse_config(text);
  if (wanted.empty()) return wanted;
  for (const auto& [name, value] : wanted.fields()) require_field(kernel, costs, name, value, source);
  std::vector<ConfigCost> matching;
  std::ranges::copy_if(costs, std::back_inserter(matching), [&](const ConfigCost& cost) {
    return std::ranges::all_of(wanted.fields(), [&](const auto& field) { return cost.config.find(field.first) == field.second; });
  });
  require(!matching.empty(), "{}: {}: expected one of {}, found {}", source, kernel.name, configs_text(costs), quote(text));
  return cheapest(matching, margin).config;
}

std::string declines_text(const std::vector<Candidate>& candidates) {
  std::string reasons;
  for (const Candidate& candidate : candidates) reasons += fmt::format("; {}: {}", candidate.kernel->name, *candidate.decline);
  return reasons;
}

}  // namespace

Selection explain_selection(const Region& region) {
  const DeviceLimits limits = limits_of(region.target());
  Selection selection;
  double best = 0;  // seconds; 0 where the chosen kernel has no model
  bool forced = false;
  for (const Kernel* kernel : kernels_for(region)) {
    Candidate& candidate = selection.candidates.emplace_back(Candidate{kernel, decline_of(*kernel, region), {}});
    if (candidate.decline) continue;
    candidate.configs = costs_of(*kernel, region, limits);
    const double margin = config_margin(*kernel, region.target());
    if (const auto text = forced_configs().find(kernel->name); text && !forced) {
      selection.choice = {*kernel, wanted_config(*kernel, candidate.configs, margin, *text, forced_configs().source())};
      forced = true;
    }
    if (forced) continue;
    const ConfigCost& own = cheapest(candidate.configs, margin);
    const Kernel* const before = selection.choice.kernel;
    if (before && !is_cheaper(own.seconds, best, kernel_margin(*kernel, *before, region.target()))) continue;
    selection.choice = {*kernel, own.config};
    best = own.seconds;
  }
  return selection;
}

Choice select_kernel(const Region& region) {
  Selection selection = explain_selection(region);
  if (selection.choice.kernel) return std::move(selection.choice);
  fail(Status::unsupported, "{}: expected a {} kernel that takes it, found none{}", region.to_string(), region.target() ? "CUDA" : "CPU",
       declines_text(selection.candidates));
}

bool is_taken(const Region& region) {
  return std::ranges::any_of(kernels_for(region), [&](const Kernel* kernel) { return !decline_of(*kernel, region); });
}

bool fuses(OpKind anchor, const Target* target) {
  return std::ranges::any_of(kernels_for(anchor, target), [](const Kernel* kernel) { return kernel->fuses; });
}

Choice choose_by_name(const Region& region, std::string_view name, std::string_view config) {
  if (name.empty() && config.empty()) return select_kernel(region);
  const std::string wanted = name.empty() ? select_kernel(region).kernel->name : std::string(name);
  const std::span<const Kernel* const> kernels = kernels_for(region);
  const auto found = std::ranges::find_if(kernels, [&](const Kernel* kernel) { return kernel->name == wanted; });
  if (found == kernels.end()) {
    std::vector<std::string_view> names;
    for (const Kernel* kernel : kernels) names.push_back(kernel->name);
    fail(Status::invalid_argument, "--kernel: expected one of {}, found {}", fmt::join(names, ", "), quote(wanted));
  }
  const Kernel& kernel = **found;
  if (const Decline decline = kernel.declines(region)) fail(Status::unsupported, "{}: expected {} to take it, found: {}", region.to_string(), wanted, *decline);
  const std::vector<ConfigCost> costs = costs_of(kernel, region, limits_of(region.target()));
  const double margin = config_margin(kernel, region.target());
  if (!config.empty()) return {kernel, wanted_config(kernel, costs, margin, config, "--config")};
  if (const auto text = forced_configs().find(wanted)) return {kernel, wanted_config(kernel, costs, margin, *text, forced_configs().source())};
  return {kernel, cheapest(costs, margin).config};
}

}  // namespace cermet
