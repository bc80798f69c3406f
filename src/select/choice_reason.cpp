#include "select/choice_reason.hpp"

#include <algorithm>

#include "select/margin.hpp"

namespace cermet {
namespace {

std::string measured_reason(const TuningEntry& entry) {
  std::string text = fmt::format("measured to be the fastest on {}", entry.date);
  if (!entry.rivals.empty()) {
    const TunedRival& next = *std::ranges::min_element(entry.rivals, {}, &TunedRival::seconds);
    // The entry's time is that of a comparison in turn, where another clock may have run than when a rival was measured
    // alone.
    if (next.seconds > entry.seconds)
      text += fmt::format(", {:.2f} times as fast as {}, {}", next.seconds / entry.seconds, next.kernel, next.config);
    else text += fmt::format("; {}, {} was not faster beyond noise", next.kernel, next.config);
  }
  return text;
}

/// The least modelled time of a candidate's configurations; 0 without a model.
double modelled_seconds(const Candidate& candidate) {
  return std::ranges::min_element(candidate.configs, {}, &ConfigCost::seconds)->seconds;
}

}  // namespace

std::string choice_reason(const Selection& selection, const Region& region) {
  const Kernel* const chosen = selection.choice.kernel;
  if (!chosen) return {};
  if (selection.tuned) return measured_reason(selection.tuned->entry);
  if (forced_configs().find(chosen->name)) return fmt::format("{} names it", forced_configs().source());
  std::vector<const Candidate*> fitting;
  for (const Candidate& candidate : selection.candidates)
    if (!candidate.decline) fitting.push_back(&candidate);
  if (fitting.size() == 1) return "no other kernel takes this call";
  const Candidate& first = *fitting.front();
  const auto found = std::ranges::find(fitting, chosen, &Candidate::kernel);
  if (found == fitting.begin()) return "default choice; no other kernel is predicted to be faster beyond model error";
  const double margin = kernel_margin(*chosen, *first.kernel, region.target()),
               share = modelled_seconds(**found) / modelled_seconds(first);
  return fmt::format("modelled to take {:.0f} % of the time of {}, which models are trusted with from {:.0f} % down",
                     share * 100, first.kernel->name, (1 - margin) * 100);
}

}  // namespace cermet
