#include "select/select.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "foreign/registry.hpp"
#include "kernel/config_match.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"
#include "kernel/forced.hpp"
#include "select/apart.hpp"
#include "select/cost_factors.hpp"
#include "select/device_identity.hpp"
#include "select/margin.hpp"
#include "select/measured_choice.hpp"

namespace cermet {
namespace {

std::span<const Kernel* const> kernels_for(OpKind anchor, const Target* target) {
  return foreign::candidates(anchor, target != nullptr);
}

std::span<const Kernel* const> kernels_for(const Region& region) {
  static const bool known = (require_known_kernels(forced_configs()), require_known_disabled(),
                             true);  // of the environment, not checked yet
  CERMET_ASSERT(known);
  if (!region.target()) cpu::active_isa();
  if (!region.is_single()) verify(region);
  return kernels_for(region.problem().op->kind, region.target());
}

std::vector<ConfigCost> costs_of(const Kernel& kernel, const Region& region, const DeviceLimits& limits, int threads) {
  std::vector<ConfigCost> costs;
  const CostFactors& factors = CostFactors::process();
  const bool is_fitted = kernel.cost && !factors.empty() && (region.target() || threads > 0);
  const double factor = is_fitted ? factors.of(device_text(region.target(), threads), kernel.name) : 1;
  for (Config& config : kernel.configs(region)) {
    const double seconds = kernel.cost ? factor * kernel.cost(region, config, limits) : 0;
    costs.push_back({std::move(config), seconds});
  }
  CERMET_ASSERT(!costs.empty());
  return costs;
}

bool is_cheaper(double seconds, double than, double margin) {
  return seconds > 0 && than > 0 && seconds < than * (1 - margin);
}

/// The first of those that are not clearly dearer than another.
const ConfigCost& cheapest(const std::vector<ConfigCost>& costs, double margin) {
  const ConfigCost* best = &costs.front();
  for (const ConfigCost& cost : costs)
    if (is_cheaper(cost.seconds, best->seconds, margin)) best = &cost;
  return *best;
}

/// Where a text is asked for: a kernel with its configurations and their costs.
struct Wanted {
  const Kernel& kernel;
  const Region& region;
  int threads;
  const std::vector<ConfigCost>& costs;
};

/// The point of the kernel's space that the text names in full, or the first by cost of its configurations that have
/// the fields of the text; `source` names who gave it.
Config wanted_config(const Wanted& wanted_of, double margin, std::string_view text, std::string_view source) {
  const auto& [kernel, region, threads, costs] = wanted_of;
  if (Config named = parse_config(text); space_of(kernel, region, threads).contains(named)) return named;
  std::vector<Config> configs;
  for (const ConfigCost& cost : costs) configs.push_back(cost.config);
  const std::vector<Config> wanted = configs_with(kernel, configs, text, source);
  if (wanted.front().empty()) return {};
  std::vector<ConfigCost> matching;
  std::ranges::copy_if(costs, std::back_inserter(matching),
                       [&](const ConfigCost& cost) { return std::ranges::find(wanted, cost.config) != wanted.end(); });
  return cheapest(matching, margin).config;
}

std::set<std::string_view> all_names() {
  std::set<std::string_view> names;
  for (const Kernel* kernel : cpu::all_kernels()) names.insert(kernel->name);
  for (const Kernel* kernel : cuda::all_kernels()) names.insert(kernel->name);
  for (const Kernel* kernel : foreign::foreign_kernels()) names.insert(kernel->name);
  return names;
}

std::string_view family_of(std::string_view kernel) { return kernel.substr(0, kernel.find('.')); }

/// Throws unless a kernel has this name: with the kernels of its family, or where there is no such family with all
/// families.
void require_kernel(std::string_view name, std::string_view source) {
  const std::set<std::string_view> names = all_names();
  if (names.contains(name)) return;
  std::set<std::string_view> family, families;
  for (const std::string_view known : names) {
    families.insert(family_of(known));
    if (family_of(known) == family_of(name)) family.insert(known);
  }
  if (family.empty())
    fail(Status::invalid_argument, "{}: expected a kernel of a family like {}, found {}", source,
         fmt::join(families, ", "), quote(name));
  fail(Status::invalid_argument, "{}: expected one of the kernels {}, found {}", source, fmt::join(family, ", "),
       quote(name));
}

std::string declines_text(const std::vector<Candidate>& candidates) {
  std::string reasons;
  for (const Candidate& candidate : candidates)
    reasons += fmt::format("; {}: {}", candidate.kernel->name, *candidate.decline);
  return reasons;
}

}  // namespace

void require_known_kernels(const ForcedConfigs& configs) {
  for (const auto& [kernel, fields] : configs.entries()) require_kernel(kernel, configs.source());
}

void require_known_disabled() {
  std::string_view text = env::value(env::Name::CERMET_DISABLE_KERNELS);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) require_kernel(text.substr(0, end), "environment variable CERMET_DISABLE_KERNELS");
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

Selection explain_selection(const Region& region, const SelectionOptions& options) {
  const DeviceLimits limits = limits_of(region.target());
  Selection selection;
  double best = 0;  // seconds; 0 where the chosen kernel has no model
  bool forced = false;
  for (const Kernel* kernel : kernels_for(region)) {
    Candidate& candidate = selection.candidates.emplace_back(Candidate{kernel, decline_of(*kernel, region), {}});
    if (candidate.decline) continue;
    candidate.configs = costs_of(*kernel, region, limits, options.threads);
    const double margin = config_margin(*kernel, region);
    if (const auto text = forced_configs().find(kernel->name); text && !forced) {
      selection.choice = {*kernel, wanted_config({*kernel, region, options.threads, candidate.configs}, margin, *text,
                                                 forced_configs().source())};
      forced = true;
    }
    if (forced) continue;
    const ConfigCost& own = cheapest(candidate.configs, margin);
    const Kernel* const before = selection.choice.kernel;
    if (before && !is_cheaper(own.seconds, best, kernel_margin(*kernel, *before, region.target()))) continue;
    selection.choice = {*kernel, own.config};
    best = is_compared_by_own_choice(*kernel, region.target()) ? candidate.configs.front().seconds : own.seconds;
  }
  if (options.tuned && !forced)
    take_measured(selection, region, options.threads,
                  (options.tuning ? *options.tuning : Tuning::process()).find(region, options.threads));
  return selection;
}

Selection select_taken(const Region& region, const SelectionOptions& options) {
  Selection selection = explain_selection(region, options);
  if (selection.choice.kernel) return selection;
  fail(Status::unsupported, "{}: expected a {} kernel that takes it, found none{}", region.to_string(),
       region.target() ? "CUDA" : "CPU", declines_text(selection.candidates));
}

Choice select_kernel(const Region& region, const SelectionOptions& options) {
  return select_taken(region, options).choice;
}

std::string declines_of(const Region& region) {
  std::string text;
  std::set<std::string> known;
  for (const Kernel* kernel : kernels_for(region)) {
    const Decline decline = decline_of(*kernel, region);
    if (!decline) return {};
    if (known.insert(*decline).second)
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kernel->name, *decline);
  }
  return text.empty() ? "no kernel" : text;
}

bool is_taken(const Region& region) {
  std::size_t cut = 0;
  for (const Kernel* kernel : kernels_for(region)) {
    if (decline_of(*kernel, region)) continue;
    const bool whole = region.is_single() || forced_configs().find(kernel->name);
    const RegionCut own = whole ? RegionCut() : kernel->cut(region);
    if (own.rule == RegionCut::Rule::none) return true;
    if (own.rule == RegionCut::Rule::compare && kernel->cost) cut = own.at;
  }
  return cut > 0 && !is_faster_apart(region, cut);
}

bool fuses(OpKind anchor, const Target* target) {
  return std::ranges::any_of(kernels_for(anchor, target), [](const Kernel* kernel) { return kernel->fuses; });
}

namespace {

/// The name of a kernel itself; or of the best kernel of a family: "gemm.linear" for gemm.linear.packed.
std::string member_named(const Region& region, std::span<const Kernel* const> kernels, std::string_view name,
                         const SelectionOptions& options) {
  std::string own(name);
  if (std::ranges::any_of(kernels, [&](const Kernel* kernel) { return kernel->name == name; })) return own;
  const std::string family = own + ".";
  const auto is_member = [&](const Kernel* kernel) { return std::string_view(kernel->name).starts_with(family); };
  if (const Kernel* const chosen = explain_selection(region, options).choice.kernel; chosen && is_member(chosen))
    return std::string(chosen->name);
  const auto first = std::ranges::find_if(
      kernels, [&](const Kernel* kernel) { return is_member(kernel) && !kernel->declines(region); });
  return first == kernels.end() ? own : std::string((*first)->name);
}

}  // namespace

Choice choose_by_name(const Region& region, std::string_view name, std::string_view config,
                      const SelectionOptions& options, std::string_view given_as) {
  if (name.empty() && config.empty()) return select_kernel(region, options);
  const std::span<const Kernel* const> kernels = kernels_for(region);
  const std::string wanted = name.empty() ? std::string(select_kernel(region, options).kernel->name)
                                          : member_named(region, kernels, name, options);
  const auto found = std::ranges::find_if(kernels, [&](const Kernel* kernel) { return kernel->name == wanted; });
  if (found == kernels.end()) {
    std::vector<std::string_view> names;
    for (const Kernel* kernel : kernels) names.push_back(kernel->name);
    fail(Status::invalid_argument, "{}kernel: expected one of {}, found {}", given_as, fmt::join(names, ", "),
         quote(wanted));
  }
  const Kernel& kernel = **found;
  if (const Decline decline = kernel.declines(region))
    fail(Status::unsupported, "{}: expected {} to take it, found: {}", region.to_string(), wanted, *decline);
  const std::vector<ConfigCost> costs = costs_of(kernel, region, limits_of(region.target()), options.threads);
  const double margin = config_margin(kernel, region);
  if (!config.empty())
    return {kernel,
            wanted_config({kernel, region, options.threads, costs}, margin, config, fmt::format("{}config", given_as))};
  if (const auto text = forced_configs().find(wanted))
    return {kernel, wanted_config({kernel, region, options.threads, costs}, margin, *text, forced_configs().source())};
  return {kernel, cheapest(costs, margin).config};
}

}  // namespace cermet
