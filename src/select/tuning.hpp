// The measured choices that selection asks: the user's own, then those that ship with the library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "op/region.hpp"
#include "select/tuning_database.hpp"
#include "select/tuning_table.hpp"

namespace cermet {

/// A measured choice with where it is from.
struct FoundTuning {
  TuningEntry entry;
  bool shipped = false;  ///< from the library's own table
};

/// Where measured choices are kept, as CERMET_TUNING says: empty for tuning.db in the cache folder, `off`, a database, or a text table (FILE.json, as
/// `cermet tune export` writes it), which is read once and never written, so that processes that share one choose alike.
class Tuning {
 public:
  /// What CERMET_TUNING asks for; shared by the process and read at the first call. Throws Error for a text table that cannot be read.
  static Tuning& process();
  /// `place` is CERMET_TUNING's value.
  static Tuning open(const std::string& place, const std::filesystem::path& cache_folder);

  bool is_off() const { return off_; }
  /// What says for sure that nothing is found, without making a key.
  bool empty() const;
  /// The entries for the region on the device that it is for (with so many threads on the CPU), the user's own first. Thread-safe.
  std::vector<FoundTuning> find(const Region& region, int threads) const;
  /// Where the tuner stores what it measures. Throws Error saying why it cannot: switched off, a text table, no cache folder.
  TuningDatabase& database();
  /// What entries are read from, for readers: a path, or why there is none.
  std::string place() const;
};

}  // namespace cermet
