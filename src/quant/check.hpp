// Verifies that a quantized checkpoint matches its policy.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"

namespace cermet {

struct QuantizedCheck {
  std::int64_t tensors = 0, modules = 0,
               quantized = 0;           ///< checked; modules: quantized ones; quantized values: quantized values
  std::vector<std::string> violations;  ///< one line each, sorted by tensor within a kind
  bool ok() const { return violations.empty(); }
};

struct QuantizedCheckOptions {
  const std::atomic<bool>* cancelled = nullptr;  ///< checked between pieces; ends with Error(cancelled)
  std::function<void(std::int64_t, std::int64_t)> on_progress =
      {};  ///< bytes done and in total; called by the calling thread
};

/// Reads every tensor of a quantized folder and holds it to the policy in cermet_quantization.json (of a folder without
/// one, to what its descriptor says): the descriptor gives every module the policy's scheme; no tensor is missing,
/// misshapen, of another type or one too many; quantized values lie in the range that scales were made for; scales are
/// finite and above 0; siblings have the same input scale; real values are finite. Throws Error where the folder cannot
/// be opened or is not quantized.
QuantizedCheck check_quantized(const std::filesystem::path& folder, ThreadPool& pool,
                               const QuantizedCheckOptions& options = {});

}  // namespace cermet
