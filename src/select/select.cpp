#include "select/select.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/decline.hpp"

namespace cermet {
namespace {

/// What models cannot tell apart: two choices whose modelled times differ by less than this share. It was set so that the calls of the GPU suite and of all
/// architectures keep the kernels that were measured fastest by hand; smaller shares move some to kernels that nobody has timed there.
constexpr double margin = 0.35;

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

/// The first of those that are not clearly dearer than another.
const ConfigCost& cheapest(const std::vector<ConfigCost>& costs) {
  const ConfigCost* best = &costs.front();
  for (const ConfigCost& cost : costs)
    if (cost.seconds < best->seconds * (1 - margin)) best = &cost;
  return *best;
}

std::string configs_text(const std::vector<ConfigCost>& costs) {
  std::string text;
  for (const ConfigCost& cost : costs) text += fmt::format("{}{}", text.empty() ? "" : "; ", cost.config.to_string());
  return text;
}

Config checked_config(const Kernel& kernel, const Region& region, const std::vector<ConfigCost>& costs, std::string_view text) {
  const Config wanted = parse_config(text);
  const bool exists = std::ranges::any_of(costs, [&](const ConfigCost& cost) { return cost.config == wanted; });
  require(exists, "{}: expected a configuration of {}, one of {}, found {}", region.to_string(), kernel.name, configs_text(costs), quote(text));
  return wanted;
}

/// The text that CERMET_CONFIG gives a kernel: "gemv.linear: stream=0; gemm.linear.hopper: tile_m=64 tile_n=32 stages=8".
std::optional<std::string_view> forced_config(std::string_view kernel) {
  const std::string_view all = env::value(env::Name::CERMET_CONFIG);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(';', begin), all.size());
    std::string_view entry = all.substr(begin, end - begin);
    begin = end + 1;
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    require(colon != std::string_view::npos, "environment variable CERMET_CONFIG: expected `kernel: field=1 ...` between semicolons, found {}", quote(entry));
    if (entry.substr(0, colon) == kernel) return entry.substr(colon + 1);
  }
  return std::nullopt;
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
    if (const auto text = forced_config(kernel->name); text && !forced) {
      selection.choice = {*kernel, checked_config(*kernel, region, candidate.configs, *text)};
      forced = true;
    }
    if (forced) continue;
    const ConfigCost& own = cheapest(candidate.configs);
    const bool is_cheaper = own.seconds > 0 && best > 0 && own.seconds < best * (1 - margin);
    if (selection.choice.kernel && !is_cheaper) continue;
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
  if (config.empty()) config = forced_config(wanted).value_or("");
  return {kernel, config.empty() ? cheapest(costs).config : checked_config(kernel, region, costs, config)};
}

}  // namespace cermet
