// The measured choices that selection asks: the user's own, then those that ship with the library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "op/schema/region.hpp"
#include "select/tuning_database.hpp"
#include "select/tuning_table.hpp"

namespace cermet {

/// A measured choice and where it is from.
struct FoundTuning {
  TuningEntry entry;
  bool shipped = false;  ///< from a table of the library
};

/// Where measured choices are kept. CERMET_TUNING names the place: nothing for `tuning/tuning-1.db` in the cache
/// folder; `off`; a database; or a text table (FILE.json, as `cermet tune export` writes it), which is read once and
/// never written, so that all processes that are given one choose alike.
class Tuning {
 public:
  /// What CERMET_TUNING asks for; shared by the process and read at the first call. Throws Error where it names a file
  /// that is neither.
  static Tuning& process();
  /// `place` as CERMET_TUNING has it. `shipped` are the library's own entries; null for none.
  static Tuning open(const std::string& place, const std::filesystem::path& cache_folder, const TuningTable* shipped);

  bool is_off() const { return is_off_; }
  /// The entries for the region on its device, on the CPU with so many threads (0: not known, so none), the user's own
  /// first. Thread-safe.
  std::vector<FoundTuning> find(const Region& region, int threads) const;
  /// Values of the region's symbols for which there are entries of their own. Thread-safe.
  std::vector<SymbolValues> tuned_sizes(const Region& region, int threads) const;
  /// The user's own entries by key; of one device where it is named.
  std::vector<TuningEntry> all(std::string_view device = {}) const;
  /// Where a tuner stores what it measures. Throws Error(unsupported) saying why there is no such place.
  TuningDatabase& database();
  /// For readers: the file, or why there is none.
  std::string place() const;

 private:
  bool is_off_ = false;
  std::filesystem::path file_;  ///< empty where there is none
  std::optional<TuningDatabase> database_;
  TuningTable text_;  ///< of a text table
  const TuningTable* shipped_ = nullptr;
};

}  // namespace cermet
