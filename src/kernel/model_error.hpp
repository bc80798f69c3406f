// How far a kernel's modelled times can be trusted.
#pragma once

#include <optional>

namespace cermet {

/// Of Kernel::cost, as shares of a time (docs/notes/selection.md).
struct ModelError {
  /// What a model takes at its maximum, though launches have less.
  enum class Assumes : unsigned char { nothing, longest_context, group_lengths };

  /// At most, against times recorded on an H200 (bench/cost_models.py) of the kernel's own configurations; none where
  /// the model was not compared with records.
  std::optional<double> recorded = {};
  /// The same between configurations, for a known number of rows.
  std::optional<double> of_configs = {};
  Assumes assumes = Assumes::nothing;
};

}  // namespace cermet
