#include "cli/explain/explain_selection.hpp"

#include <algorithm>

#include "cli/bench/call_plot.hpp"
#include "cli/op_call.hpp"
#include "cli/ui/text_output.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/task.hpp"
#include "select/bound_op.hpp"
#include "select/choice_reason.hpp"
#include "select/measured_choice.hpp"
#include "select/select.hpp"

namespace cermet::cli {
namespace {

Json configs_json(const Selection& selection, const Candidate& candidate) {
  Json list = Json::array();
  for (const ConfigCost& cost : candidate.configs) {
    const auto measured = measured_time(selection, candidate.kernel->name, cost.config.to_string());
    list.push_back({{"config", cost.config.to_string()},
                    {"modelled_seconds", cost.seconds > 0 ? Json(cost.seconds) : Json()},
                    {"measured_seconds", measured ? Json(measured->seconds) : Json()}});
  }
  return list;
}

/// Names of the programs of a kernel, or of those that take launches which its own do not suit.
std::vector<std::string> names_of(const std::vector<cuda::Program>& programs, bool fallbacks) {
  std::vector<std::string> names;
  for (const cuda::Program& program : programs)
    if (program.fallback == fallbacks) names.emplace_back(short_name(program));
  return names;
}

std::vector<std::string> fallbacks_of(const Region& region, const Candidate& candidate) {
  if (candidate.decline || !candidate.kernel->programs) return {};
  return names_of(candidate.kernel->programs(region), true);
}

/// A constant operand with the layout that the kernel packs it into.
struct PackedOperand {
  std::string name;
  std::string_view layout;
  std::int64_t bytes;
};

std::vector<PackedOperand> packed_operands(const Region& region, const Kernel& kernel) {
  std::vector<PackedOperand> list;
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    if (!region.has(i) || !region.is_constant(i)) continue;
    if (const WeightLayout* const layout = kernel.weight_layout(region, i))
      list.push_back({operand_name(region, i), layout->name, packed_bytes(*layout, region.operand_type(i))});
  }
  return list;
}

/// The least time that the limits of a GPU allow. Limits of a CPU are assumed, so that nothing is said of it.
std::optional<double> least_seconds(const Region& region) {
  return region.target() ? std::optional(limit_seconds(region, limits_of(region.target()))) : std::nullopt;
}

Json tuning_json(const FoundTuning& found) {
  const TuningEntry& entry = found.entry;
  return {{"kernel", entry.kernel},       {"config", entry.config}, {"seconds", entry.seconds},
          {"spread", entry.spread},       {"date", entry.date},     {"shipped", found.shipped},
          {"rivals", entry.rivals.size()}};
}

/// "gemv.linear, stream=1: 12.3 us +- 0.2 us, measured on 2026-03-01 14:05:09 against 5 others".
std::string entry_text(const TuningEntry& entry) {
  return fmt::format("{}, {}: {} +- {}, measured on {} against {} other{}", entry.kernel, entry.config,
                     seconds_text(entry.seconds), seconds_text(entry.spread), entry.date, entry.rivals.size(),
                     entry.rivals.size() == 1 ? "" : "s");
}

Json selection_json(const Region& region, const Selection& selection, int threads) {
  const Cost cost = cost_of(region);
  Json json{{"problem", region.to_string()},
            {"outputs", Json::object()},
            {"operations", cost.operations},
            {"bytes", cost.bytes}};
  for (std::size_t i = 0; i < region.results.size(); ++i)
    json["outputs"][result_name(region, i)] = region.result_type(i).to_string();
  json["constants"] = constant_names(region);
  if (region.target()) {
    json["target"] = region.target()->name;
  } else {
    json["instruction_set"] = cpu::name_of(cpu::active_isa());
    json["threads"] = threads;
  }
  json["candidates"] = Json::array();
  for (const Candidate& candidate : selection.candidates)
    json["candidates"].push_back({{"kernel", candidate.kernel->name},
                                  {"decline", candidate.decline ? Json(*candidate.decline) : Json()},
                                  {"configs", configs_json(selection, candidate)},
                                  {"fallbacks", fallbacks_of(region, candidate)}});
  json["tuned"] = selection.tuned ? tuning_json(*selection.tuned) : Json();
  json["tuning_ignored"] = Json::array();
  for (const IgnoredTuning& ignored : selection.ignored) {
    json["tuning_ignored"].push_back(tuning_json(ignored.found));
    json["tuning_ignored"].back()["reason"] = ignored.reason;
  }
  json["limits"] = limits_of(region.target()).source;
  const std::optional<double> least = least_seconds(region);
  json["limit_seconds"] = least ? Json(*least) : Json();
  const auto& [kernel, config] = selection.choice;
  json["kernel"] = kernel ? Json(kernel->name) : Json();
  if (!kernel) return json;
  json["config"] = config.to_string();
  json["reason"] = choice_reason(selection, region);
  json["workspace_bytes"] = kernel->workspace(region, config, threads);
  json["packed"] = Json::array();
  for (const PackedOperand& each : packed_operands(region, *kernel))
    json["packed"].push_back({{"operand", each.name}, {"layout", each.layout}, {"bytes", each.bytes}});
  if (!kernel->programs) return json;
  const std::vector<cuda::Program> programs = kernel->programs(region, config);
  json["programs"] = names_of(programs, false);
  json["fallbacks"] = names_of(programs, true);
  return json;
}

/// "data sheet of H200: 8.1 us at least, 76 % of what was measured".
std::string limits_text(const Region& region, const Selection& selection) {
  std::string text = limits_of(region.target()).source;
  const std::optional<double> least = least_seconds(region);
  if (!least) return text;
  text += fmt::format(": {} at least", seconds_text(*least));
  if (selection.tuned)
    return text + fmt::format(", {:.0f} % of what was measured", 100 * *least / selection.tuned->entry.seconds);
  const auto chosen = std::ranges::find(selection.candidates, selection.choice.kernel, &Candidate::kernel);
  if (chosen == selection.candidates.end() || chosen->decline) return text;
  const auto cost = std::ranges::find(chosen->configs, selection.choice.config, &ConfigCost::config);
  return cost == chosen->configs.end() || cost->seconds <= 0
             ? text
             : text + fmt::format(", {:.0f} % of what is modelled", 100 * *least / cost->seconds);
}

/// Cells of a configuration's times: as modelled, as measured, and how much of that, or of the former, is the least
/// that the limits allow.
std::vector<std::string> time_cells(const Selection& selection, const Candidate& candidate, const ConfigCost& cost,
                                    std::optional<double> limit) {
  const auto measured = measured_time(selection, candidate.kernel->name, cost.config.to_string());
  const double seconds = measured ? measured->seconds : cost.seconds;
  return {cost.seconds > 0 ? seconds_text(cost.seconds) : "-",
          measured ? fmt::format("{} +- {}", seconds_text(measured->seconds), seconds_text(measured->spread)) : "-",
          seconds > 0 && limit ? fmt::format("{:.0f} %", 100 * *limit / seconds) : "-"};
}

void add_row(Table& table, std::string number, std::string name, std::vector<std::string> times, std::string verdict) {
  std::vector<std::string> row{std::move(number), std::move(name)};
  std::ranges::move(times, std::back_inserter(row));
  if (!verdict.empty()) row.push_back(std::move(verdict));
  table.row(std::move(row));
}

/// A row for the kernel in its own configuration, and one for each other.
void add_candidate(Table& table, std::size_t i, const Region& region, const Selection& selection,
                   std::optional<double> limit) {
  const Candidate& candidate = selection.candidates[i];
  if (candidate.decline)
    return add_row(table, std::to_string(i + 1), candidate.kernel->name, {"-", "-", "-"},
                   "declines: " + *candidate.decline);
  const bool is_chosen = candidate.kernel == selection.choice.kernel;
  const auto mark = [&](const Config& config) {
    return is_chosen && config == selection.choice.config ? "chosen" : "";
  };
  const ConfigCost& own = candidate.configs[0];
  std::string verdict = !is_chosen                              ? "would fit too"
                        : own.config == selection.choice.config ? "chosen"
                                                                : "chosen, in a configuration below";
  if (const auto fallbacks = fallbacks_of(region, candidate); !fallbacks.empty())
    verdict +=
        fmt::format("{}unaligned launches fall back on {}", verdict.empty() ? "" : "; ", fmt::join(fallbacks, ", "));
  add_row(table, std::to_string(i + 1), candidate.kernel->name, time_cells(selection, candidate, own, limit), verdict);
  const auto add_config = [&](const ConfigCost& cost) {
    add_row(table, "", "  " + cost.config.to_string(), time_cells(selection, candidate, cost, limit),
            mark(cost.config));
  };
  for (std::size_t c = 1; c < candidate.configs.size(); ++c) add_config(candidate.configs[c]);
  const bool listed =
      std::ranges::find(candidate.configs, selection.choice.config, &ConfigCost::config) != candidate.configs.end();
  if (is_chosen && !listed)
    add_config({selection.choice.config, 0});  // of its space, which has more than models choose from
}

void selection_text(Console& console, const Region& region, const Selection& selection, int threads) {
  const auto [operations, bytes] = cost_of(region);
  const auto& [kernel, config] = selection.choice;
  Table facts, candidates;
  candidates.row({"", "kernel", "modelled", "measured", "of the limit"});
  for (std::size_t i = 0; i < region.results.size(); ++i)
    facts.row({"result " + result_name(region, i), region.result_type(i).to_string()});
  facts.row({"cost", fmt::format("{} operations, {} moved ({:.3g} operations per byte)", count_text(operations),
                                 bytes_text(bytes), operations / std::max(bytes, 1.0))});
  if (const auto names = constant_names(region); !names.empty())
    facts.row({"constants", fmt::format("{}", fmt::join(names, ", "))});
  facts.row({"machine", region.target() ? region.target()->name
                                        : fmt::format("{} threads, {}", threads, cpu::name_of(cpu::active_isa()))});
  if (!region.target() && cpu::active_isa() >= cpu::Isa::avx512_bf16)
    facts.row({"bf16", fmt::format("dot products run at {:.2f} times float32, measured now", cpu::bf16_ratio())});
  if (!region.target() && cpu::active_isa() >= cpu::Isa::amx)
    facts.row(
        {"AMX",
         fmt::format("bf16 tiles run at {:.2f} times float32, int8 tiles at {:.2f} times dot products, measured now",
                     cpu::amx_bf16_ratio(), cpu::amx_int8_ratio())});
  facts.row({"limits", limits_text(region, selection)});
  if (selection.tuned)
    facts.row({selection.tuned->shipped ? "tuned, shipped" : "tuned", entry_text(selection.tuned->entry)});
  for (const IgnoredTuning& ignored : selection.ignored)
    facts.row({"tuning ignored", fmt::format("{}: {}", ignored.reason, entry_text(ignored.found.entry))});
  if (kernel) {
    facts.row({"choice", fmt::format("{}: {}", kernel->name, choice_reason(selection, region))});
    facts.row({"workspace", bytes_text(static_cast<double>(kernel->workspace(region, config, threads)))});
    for (const PackedOperand& each : packed_operands(region, *kernel))
      facts.row(
          {"packed " + each.name, fmt::format("{}, {}", each.layout, bytes_text(static_cast<double>(each.bytes)))});
  }
  if (kernel && kernel->programs) {
    const std::vector<cuda::Program> programs = kernel->programs(region, config);
    facts.row({"programs", fmt::format("{}", fmt::join(names_of(programs, false), ", "))});
    if (const auto fallbacks = names_of(programs, true); !fallbacks.empty())
      facts.row({"fallbacks", fmt::format("{}, for addresses or strides that do not suit the kernel's own programs",
                                          fmt::join(fallbacks, ", "))});
  }
  for (std::size_t i = 0; i < selection.candidates.size(); ++i)
    add_candidate(candidates, i, region, selection, least_seconds(region));
  console.print("{}\n{}candidates with their configurations; the first where models cannot tell\n{}",
                region.to_string(), facts.to_string(), candidates.to_string());
  if (!kernel) console.write("no kernel takes this call\n");
}

}  // namespace

void print_selection(Console& console, const Region& region, int threads, const std::string& plot) {
  if (!plot.empty()) {
    check_text_output(console, plot);
    if (!write_text_output(console, plot, svg_of(plot_of_call(region, threads, limits_of(region.target()))))) return;
    console.note(plot + "\n");
  }
  const Selection selection = explain_selection(region, {.threads = threads});
  if (console.json()) console.write_json(selection_json(region, selection, threads));
  else selection_text(console, region, selection, threads);
}

}  // namespace cermet::cli
