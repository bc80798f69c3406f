// Results of launches as files, for who wants to look at more than the first element that differs.
#pragma once

#include "io/json_value.hpp"

#include "io/new_folder.hpp"
#include "runtime/bisect_region.hpp"

namespace cermet::cli {

/// A folder that appears with commit(): of the n-th launch that was compared the files n.r.expected.npy and
/// n.r.found.npy for each of its results r, and launches.json, which says what it was.
class RegionDump {
 public:
  /// Throws Error where something other than an empty folder has this name.
  explicit RegionDump(const std::filesystem::path& folder) : folder_(folder) {}
  void keep(const RegionResults& results);
  void commit();

 private:
  NewFolder folder_;
  JsonValue launches_ = JsonValue::array();
  std::size_t count_ = 0;
};

}  // namespace cermet::cli
