#include "select/measured_choice.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Why an entry's choice is not taken; empty for one that is.
std::string fault_of(const Candidate* candidate, const Region& region, int threads, const TuningEntry& entry,
                     const Config& config) {
  if (!candidate) return fmt::format("expected a kernel of this operator, found {}", quote(entry.kernel));
  if (candidate->decline) return fmt::format("{} declines: {}", entry.kernel, *candidate->decline);
  if (config.empty() || std::ranges::find(candidate->configs, config, &ConfigCost::config) != candidate->configs.end())
    return {};
  const auto fault = space_of(*candidate->kernel, region, threads).fault_of(config);
  return fault ? fmt::format("{} has no configuration {} here: {}", entry.kernel, entry.config, *fault) : "";
}

}  // namespace

void take_measured(Selection& selection, const Region& region, int threads, std::vector<FoundTuning> found) {
  for (FoundTuning& measured : found) {
    const auto candidate = std::ranges::find_if(
        selection.candidates, [&](const Candidate& c) { return c.kernel->name == measured.entry.kernel; });
    const Config config = parse_config(measured.entry.config);
    std::string fault = fault_of(candidate == selection.candidates.end() ? nullptr : &*candidate, region, threads,
                                 measured.entry, config);
    if (fault.empty()) {
      selection.choice = {*candidate->kernel, config};
      selection.tuned = std::move(measured);
      return;
    }
    selection.ignored.push_back({std::move(measured), std::move(fault)});
  }
}

const TuningEntry* measured_entry(const Selection& selection) {
  if (selection.tuned) return &selection.tuned->entry;
  return selection.ignored.empty() ? nullptr : &selection.ignored.front().found.entry;
}

std::optional<MeasuredTime> measured_time(const Selection& selection, std::string_view kernel,
                                          std::string_view config) {
  const TuningEntry* const entry = measured_entry(selection);
  if (!entry) return std::nullopt;
  if (entry->kernel == kernel && entry->config == config) return MeasuredTime{entry->seconds, entry->spread};
  const auto rival = std::ranges::find_if(
      entry->rivals, [&](const TunedRival& r) { return r.kernel == kernel && r.config == config; });
  return rival == entry->rivals.end() ? std::nullopt : std::optional(MeasuredTime{rival->seconds, rival->spread});
}

}  // namespace cermet
