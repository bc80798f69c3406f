// The SQLite file of a tuning database: its form, reading all of it, and writing single entries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/sqlite.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

/// One table with a row for each entry and a checksum over all of the entry, so that every change of a stored byte is
/// found.
class TuningFile {
 public:
  static constexpr std::int64_t version = 1;

  /// All entries of a file; none where it is missing or empty. Throws Error(invalid_file) saying what is damaged or
  /// foreign, Error(io) where it cannot be read.
  static std::vector<TuningEntry> read(const std::filesystem::path& file);
  /// Renames a file that read() refuses, with what SQLite keeps beside it, unless another process did so. Returns its
  /// new name; empty where nothing was renamed. Throws Error(io) where that fails.
  static std::filesystem::path move_aside(const std::filesystem::path& file);

  /// Opens the file for writing and makes it and its folder where they are missing. Throws as read() does.
  explicit TuningFile(const std::filesystem::path& file);
  /// Whether the name still stands for the file that was opened.
  bool is_current() const;
  void put(const TuningEntry& entry);
  /// Deletes the entries of a device, or all. Returns how many there were.
  std::int64_t clear(std::string_view device);

 private:
  std::filesystem::path file_;
  std::optional<SqliteConnection> connection_;
  std::uint64_t inode_ = 0;
};

}  // namespace cermet
