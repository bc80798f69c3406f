#include "select/measured_choice.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Why an entry's choice is not taken; empty for one that is.
std::string fault_of(const Candidate* candidate, const TuningEntry& entry, const Config& config) {
  if (!candidate) return fmt::format("expected a kernel of this operator, found {}", quote(entry.kernel));
  if (candidate->decline) return fmt::format("{} declines: {}", entry.kernel, *candidate->decline);
  if (config.empty() || std::ranges::find(candidate->configs, config, &ConfigCost::config) != candidate->configs.end()) return {};
  return fmt::format("{} has no configuration {} here", entry.kernel, entry.config);
}

}  // namespace

void take_measured(Selection& selection, std::vector<FoundTuning> found) {
  for (FoundTuning& measured : found) {
    const auto candidate = std::ranges::find_if(selection.candidates, [&](const Candidate& c) { return c.kernel->name == measured.entry.kernel; });
    const Config config = parse_config(measured.entry.config);
    std::string fault = fault_of(candidate == selection.candidates.end() ? nullptr : &*candidate, measured.entry, config);
    if (fault.empty()) {
      selection.choice = {*candidate->kernel, config};
      selection.tuned = std::move(measured);
      return;
    }
    selection.ignored.push_back({std::move(measured), std::move(fault)});
  }
}

}  // namespace cermet
