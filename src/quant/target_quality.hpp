// Meeting a budget of perplexity at the least predicted time: choose schemes by measured errors, quantize, measure,
// step back until it fits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quant/auto_policy.hpp"

namespace cermet {

struct TargetOptions {
  double rise = 0.005;           ///< of perplexity, at most; 0.005 is half a per cent
  double perplexity_before = 0;  ///< of the 16-bit model
  int max_attempts = 10;
  /// Quantizes with a policy and returns what calibration found, errors of every scheme included.
  std::function<std::vector<LayerResult>(const Policy& policy, int attempt)> quantize;
  /// Perplexity of the attempt that was quantized last.
  std::function<double(int attempt)> perplexity;
};

struct TargetAttempt {
  double error = 0, seconds = 0;  ///< sums over the groups, see SchemeOption
  double perplexity = 0;
};

struct TargetResult {
  Policy policy = Policy::standard();
  std::vector<SchemeGroup> table;       ///< with the choice; the sensitivity of the first attempt
  std::vector<TargetAttempt> attempts;  ///< the last one meets the target
};

/// The first attempt is the default policy, which is quickest as a rule; its figures are the sensitivity table. Where
/// it misses the target, perplexity is taken to rise in proportion to the sum of errors, schemes are chosen for what
/// the target leaves, and budgets shrink until a measured perplexity fits. Throws Error(invalid_argument) where nothing
/// but 16 bit everywhere would.
TargetResult meet_target(const ModelConfig& config, const TargetOptions& options);

}  // namespace cermet
