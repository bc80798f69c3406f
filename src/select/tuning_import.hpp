// Entries that another machine measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "select/tuning_database.hpp"

namespace cermet {

struct TuningImport {
  std::int64_t stored = 0, refused = 0;
  std::vector<std::string> reasons;  ///< why entries were refused, each once: what was expected and found
};

/// Stores the entries of these devices with their versions, of a CPU with any number of threads, in place of those of
/// the same key; refuses the others. Throws what TuningDatabase::put() throws.
TuningImport import_tuning(TuningDatabase& database, std::span<const TuningEntry> entries,
                           std::span<const DeviceIdentity> devices);

}  // namespace cermet
