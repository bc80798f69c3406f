// Fits models of kernels' costs to what was measured: one factor for each kernel.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/target.hpp"
#include "op/schema/region.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

/// The region of a tuning_text(), for a target: its constants, and symbols with the greatest value of their bucket as
/// their maximum. Throws Error for a text that is none.
Region region_of_tuning_text(std::string_view text, const Target* target);

/// How far a kernel's modelled times are from measured ones. Errors are means of |log(measured / modelled)|.
struct CostFit {
  std::string kernel;
  std::size_t measured = 0, regions = 0;
  double factor = 1;  ///< of modelled times; the median of measured / modelled
  double error_before = 0, error_after = 0;
  double error_held_out = 0;  ///< of each half of the regions with the factor of the other half
};

/// For every kernel with a model that was measured on at least three regions: entries of one device, the rivals
/// included. `threads`: of the CPU. Entries whose region or kernel is not known here are passed over.
std::vector<CostFit> fit_costs(std::span<const TuningEntry> entries, const Target* target);

}  // namespace cermet
