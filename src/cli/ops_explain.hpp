// Which kernel computes a region, and why: every candidate with its decline, its configurations, their modelled and measured times.
#pragma once

#include "cli/console.hpp"
#include "op/region.hpp"

namespace cermet::cli {

/// Prints the choice among all candidates; on the CPU for so many threads. Throws Error where CERMET_CONFIG or CERMET_TUNING is at fault.
void print_selection(Console& console, const Region& region, int threads);

}  // namespace cermet::cli
