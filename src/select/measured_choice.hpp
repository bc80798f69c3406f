// A measured choice against the region at hand: entries are as old as the measurement, and buckets hold regions of
// several sizes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "select/select.hpp"

namespace cermet {

/// Takes the first of these whose kernel is a candidate that does not decline and has the configuration in its space;
/// lists the others before it as ignored, each with its reason.
void take_measured(Selection& selection, const Region& region, int threads, std::vector<FoundTuning> found);

/// What was measured of a kernel in a configuration, whether or not it won; nothing where nothing was.
struct MeasuredTime {
  double seconds = 0, spread = 0;
};
std::optional<MeasuredTime> measured_time(const Selection& selection, std::string_view kernel, std::string_view config);
/// The entry that was taken, or the first of those that were ignored; null where none was found.
const TuningEntry* measured_entry(const Selection& selection);

}  // namespace cermet
