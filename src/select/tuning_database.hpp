// Measured choices on disk: one SQLite file, which many processes read and write at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

/// Entries are read once, into memory, and found there: looking one up never waits for a process that writes. The first
/// put() makes the file and its folder. Not for use after a fork.
class TuningDatabase {
 public:
  enum class Damage : std::uint8_t {
    move_aside,  ///< a file that is damaged, or no tuning database, is renamed with a warning, and everything goes on
                 ///< without it
    refuse,      ///< it is left alone, and open() throws Error(invalid_file) saying what it is
  };
  /// Reads the file; one that is missing has no entries, and so has one that may not be read, with a warning.
  static TuningDatabase open(const std::filesystem::path& file, Damage damage = Damage::move_aside);
  TuningDatabase(TuningDatabase&&) noexcept;
  TuningDatabase& operator=(TuningDatabase&&) noexcept;
  ~TuningDatabase();

  const std::filesystem::path& file() const;
  bool empty() const;
  /// Whether some entry is for the device of this text.
  bool has_device(std::string_view device) const;
  /// The entry of this key as the file had it when it was read, or as put() by this object since. Thread-safe.
  std::optional<TuningEntry> find(const TuningKey& key) const;
  /// Shows every entry's key, in no order. Thread-safe.
  void visit(FunctionRef<void(const TuningKey&)> look) const;
  /// Stores an entry in place of one of the same key: complete or not at all. Waits for others that write. Thread-safe.
  /// Throws Error(io) naming the file where it cannot be written, Error(invalid_argument) for an entry with a
  /// fault_of().
  void put(const TuningEntry& entry);
  /// By key; of one device where it is named.
  std::vector<TuningEntry> all(std::string_view device = {}) const;
  /// Deletes the entries of a device, or all where it is empty. Returns how many there were. Throws as put() does.
  std::int64_t clear(std::string_view device = {});
  /// Reads the file again, for what other processes stored.
  void reload();

 private:
  struct State;
  explicit TuningDatabase(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cermet
