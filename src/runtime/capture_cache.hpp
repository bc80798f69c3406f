// Runs that were captured, to be replayed where a run has their symbols again.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/super_kernel/device_region.hpp"

namespace cermet {

/// The launches of a run, captured, with the symbols they hold for. Bound memory must not have changed since.
struct CapturedRun {
  SymbolValues symbols;
  std::int64_t row = 1;                                ///< runs that follow each other in it
  std::vector<std::unique_ptr<DeviceRegion>> regions;  ///< what it launches as one; the captured graph goes before them
  std::unique_ptr<CapturedGraph> graph;                ///< null until the second run
  bool warm = false;  ///< the first run launched one by one, so that libraries could initialize themselves
  std::int64_t last_used = 0;
};

class CaptureCache {
 public:
  bool enabled = false;
  const CapturedRun* replayed = nullptr;  ///< by the last run

  /// The entry for `row` runs at these symbols, of which `used` count; a new one evicts the least recently used.
  CapturedRun& get(const SymbolValues& symbols, std::span<const Symbol> used, std::int64_t row);
  void clear() { runs_.clear(), replayed = nullptr; }
  /// Throws Error where a region of an earlier run gave up a wait. Runs that were enqueued after that one find its
  /// counters: they end, too, before these are 0 again.
  void check_waits(Stream& stream);

 private:
  std::vector<CapturedRun> runs_;
  std::int64_t uses_ = 0;
};

}  // namespace cermet
