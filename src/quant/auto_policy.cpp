#include "quant/auto_policy.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr double bytes_per_second = 20e9, products_per_second = 0.2e12, prefilled_per_decoded = 8;
constexpr std::array<const char*, 4> candidates{"w8a8_static", "w8a8_dynamic", "w8a16", "16bit"};

double error_of(const ModuleResult& module, const LinearScheme& scheme) {
  if (scheme == LinearScheme{}) return 0;
  const auto found = module.errors.find(std::string(name_of(scheme)));
  if (found != module.errors.end()) return found->second;
  // An expert that no held-out token reaches has no figures; its share of the error is that of its tokens: none.
  require(module.errors.empty(), "{}: expected a measured error for {}, found none", module.name, name_of(scheme));
  return 0;
}

/// Quickest first, without options that a quicker one equals or beats in error.
void keep_what_pays(std::vector<SchemeOption>& options) {
  std::stable_sort(options.begin(), options.end(),
                   [](const SchemeOption& a, const SchemeOption& b) { return a.seconds < b.seconds; });
  std::vector<SchemeOption> kept;
  for (const SchemeOption& option : options)
    if (kept.empty() || option.error < kept.back().error) kept.push_back(option);
  options = std::move(kept);
}

/// Moves from one option of a group to a later one.
struct Step {
  std::size_t group = 0, option = 0;
  double gain = -1;  ///< error less for each second more
};

}  // namespace

double predicted_seconds(const LinearModule& module, const LinearScheme& scheme, double active) {
  const double elements = static_cast<double>(module.rows) * static_cast<double>(module.columns);
  const double weight_bytes =
      elements *
      (scheme.input == LinearScheme::Input::real ? 2 : 1);  // weight-only quantization is dequantized while loading
  const double rate = scheme.input == LinearScheme::Input::real ? products_per_second : 2 * products_per_second;
  double seconds = weight_bytes / bytes_per_second + prefilled_per_decoded * elements / rate;
  if (scheme.input == LinearScheme::Input::dynamic)
    seconds += (1 + prefilled_per_decoded) * 4 * static_cast<double>(module.columns) / bytes_per_second;
  return active * seconds;
}

std::vector<SchemeGroup> sensitivity_table(const ModelConfig& config, std::span<const LayerResult> layers) {
  std::unordered_map<std::string_view, const ModuleResult*> results;
  std::unordered_map<std::int64_t, double> routed;  // tokens that a layer's experts got in total
  for (const LayerResult& layer : layers) {
    for (const ModuleResult& module : layer.modules) results.emplace(module.name, &module);
    for (const std::int64_t tokens : layer.expert_tokens) routed[layer.layer] += static_cast<double>(tokens);
  }
  const double active =
      config.experts > 0 ? static_cast<double>(config.experts_per_token) / static_cast<double>(config.experts) : 1;
  std::vector<SchemeGroup> table;
  for (const LinearModule& module : linear_modules(config)) {
    if (!is_projection(module)) continue;
    const auto result = results.find(module.name);
    require(result != results.end(), "{}: expected figures of its calibration, found none", module.name);
    auto group =
        std::find_if(table.rbegin(), table.rend(), [&](const SchemeGroup& g) { return g.name == module.group; });
    if (group == table.rend()) {
      table.push_back({module.group, {}, {}, 0});
      for (const char* name : candidates) {
        const LinearScheme scheme = *scheme_named(name);
        if (module.expert < 0 || scheme.input != LinearScheme::Input::fixed)
          table.back().options.push_back({scheme, 0, 0});
      }
      group = table.rbegin();
    }
    group->modules.push_back(module.name);
    const double share =
        module.expert < 0 ? 1 : static_cast<double>(result->second->tokens) / std::max(1.0, routed[module.layer]);
    for (SchemeOption& option : group->options) {
      option.error += share * error_of(*result->second, option.scheme);
      option.seconds += predicted_seconds(module, option.scheme, module.expert < 0 ? 1 : active);
    }
  }
  for (SchemeGroup& group : table) keep_what_pays(group.options);
  return table;
}

double total_error(std::span<const SchemeGroup> table) {
  double sum = 0;
  for (const SchemeGroup& group : table) sum += group.options[group.chosen].error;
  return sum;
}

double total_seconds(std::span<const SchemeGroup> table) {
  double sum = 0;
  for (const SchemeGroup& group : table) sum += group.options[group.chosen].seconds;
  return sum;
}

void choose_schemes(std::vector<SchemeGroup>& table, double budget) {
  for (SchemeGroup& group : table) group.chosen = 0;
  while (total_error(table) > budget) {
    Step best;
    for (std::size_t g = 0; g < table.size(); ++g) {
      const SchemeGroup& group = table[g];
      const SchemeOption& now = group.options[group.chosen];
      for (std::size_t o = group.chosen + 1; o < group.options.size(); ++o) {
        const double less = now.error - group.options[o].error, more = group.options[o].seconds - now.seconds;
        const double gain = less <= 0 ? -1 : more <= 0 ? std::numeric_limits<double>::max() : less / more;
        if (gain > best.gain) best = {g, o, gain};
      }
    }
    if (best.gain < 0) return;  // nothing is left to gain
    table[best.group].chosen = best.option;
  }
}

Policy policy_of(std::span<const SchemeGroup> table) {
  std::string text = "# Chosen by calibration.\n";
  for (const SchemeGroup& group : table) {
    const std::string_view scheme = name_of(group.options[group.chosen].scheme);
    if (group.name.ends_with(".experts")) text += fmt::format("{}.* = {}\n", group.name, scheme);
    else
      for (const std::string& module : group.modules) text += fmt::format("{} = {}\n", module, scheme);
  }
  return Policy::parse(text, "the chosen policy");
}

}  // namespace cermet
