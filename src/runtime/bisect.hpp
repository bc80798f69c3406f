// Which rule application, or which block, changes a result: runs with the first k of them, and k halves the interval.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/fusion_options.hpp"

namespace cermet {

/// A result of a run, widened.
struct RunValue {
  std::string name;
  std::vector<double> elements;
};
/// Compiles with these options, runs on the same operands each time, and returns the results and those of
/// `changes->keep` that there are.
using BisectRun = std::function<std::vector<RunValue>(const FusionOptions& options)>;

/// The element of a result that is furthest off.
struct WorstElement {
  std::string value;
  std::size_t index = 0;
  double expected = 0, found = 0;
  double error = 0;  ///< |found - expected| over the largest magnitude of what was expected; infinite where one is no
                     ///< number, or sizes differ
};
WorstElement compare_runs(const std::vector<RunValue>& expected, const std::vector<RunValue>& found);

struct BisectReport {
  std::size_t changes = 0;  ///< rule applications and blocks
  std::size_t runs = 0;
  WorstElement whole;             ///< of all changes together
  std::optional<Change> culprit;  ///< nothing where the results stay within the tolerance
  std::size_t position = 0;       ///< of the culprit among the changes, from 0
  WorstElement with;              ///< of the first `position` + 1 changes
  /// Of a block, on the same operands: its own results beside those of its operators one by one.
  std::optional<WorstElement> block;
};

/// The first change after which results differ by more than `tolerance` from those without any. Each of `options` but
/// `changes` is used as it is. Takes a number of runs that is logarithmic in the number of changes.
BisectReport bisect(const BisectRun& run, FusionOptions options, double tolerance);

}  // namespace cermet
