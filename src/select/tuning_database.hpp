// Measured choices on disk: one SQLite file in the cache folder, which many processes read and write at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "select/tuning_entry.hpp"
#include "select/tuning_table.hpp"

namespace cermet {

/// Entries are read once, into memory, and found there: a look-up never waits for a process that writes. The file is created by the first put(). One that is
/// damaged, or no such database, is renamed out of the way with a warning, and everything goes on without it.
class TuningDatabase {
 public:
  /// Reads the file; one that is missing or cannot be read holds nothing, the latter with a warning. Does not throw for what it finds in the file.
  static TuningDatabase open(const std::filesystem::path& file);
  TuningDatabase(TuningDatabase&&) noexcept;
  TuningDatabase& operator=(TuningDatabase&&) noexcept;
  ~TuningDatabase();

  const std::filesystem::path& file() const;
  /// The entry of this key when the file was read, or put since by this object. Thread-safe.
  std::optional<TuningEntry> find(const TuningKey& key) const;
  /// Stores an entry in place of one of the same key: complete or not at all. Waits for other writers. Thread-safe. Throws Error(io) naming the file where
  /// it cannot be written, Error(invalid_argument) for an entry with a fault_of().
  void put(const TuningEntry& entry);
  /// All entries by key, of one device where it is named.
  std::vector<TuningEntry> all(const std::string& device = {}) const;
  /// Deletes the entries of a device, or all. Returns how many there were. Throws Error(io) where the file cannot be written.
  std::int64_t clear(const std::string& device = {});
  /// Reads the file again.
  void reload();

 private:
  struct State;
  explicit TuningDatabase(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cermet
