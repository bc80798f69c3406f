// Which kernel computes a region, and why: every candidate with its decline, its configurations, their modelled and
// measured times.
#pragma once

#include <string>

#include "cli/ui/console.hpp"
#include "op/schema/region.hpp"

namespace cermet::cli {

/// Prints the choice among all candidates; on the CPU for so many threads. Where `plot` names a file, draws them over
/// the sizes of the region's symbol.
void print_selection(Console& console, const Region& region, int threads, const std::string& plot);

}  // namespace cermet::cli
