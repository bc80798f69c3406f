// A file descriptor with positioned reads and writes that are complete or an error naming the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace cermet {

/// An open regular file. Reads and writes carry their own position, so several threads may share one object. Every
/// failure is Error(io) with the file's name and the operating system's reason.
class PosixFile {
 public:
  /// What shows whether a file was changed since it was opened.
  struct Stamp {
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  /// Opens an existing regular file; folders, pipes and devices are refused (and never waited for).
  static PosixFile open_for_reading(const std::filesystem::path& path);
  /// The same below a folder that is open, and never through a link: what other processes put under the folder's name
  /// changes nothing.
  static PosixFile open_for_reading(int folder, const std::filesystem::path& name);
  /// Creates a file that does not exist yet.
  static PosixFile create(const std::filesystem::path& path);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  const std::filesystem::path& path() const { return path_; }
  Stamp stamp() const;
  /// Reads up to destination.size() bytes at an offset; fewer only at the end of the file.
  std::size_t read(std::int64_t offset, std::span<std::byte> destination) const;
  /// Writes all bytes at an offset. A file size limit (RLIMIT_FSIZE) is an error here and not a signal.
  void write(std::int64_t offset, std::span<const std::byte> source);
  /// Claims disk space for the whole file, where the file system can: a full disk is known before the work is done.
  void reserve(std::int64_t bytes);
  /// Syncs the content to disk, then closes.
  void sync_and_close();

 private:
  static PosixFile checked(const std::filesystem::path& path, int descriptor);
  PosixFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void close() noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Holds an existing folder against others that ask for it, until the object or the process ends; nothing is written
/// for it.
class FolderLock {
 public:
  /// Throws Error(io) naming the folder where it is held already, or cannot be opened.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// A name beside `target` that no other process uses, for content that is renamed to `target` when complete.
std::filesystem::path temporary_sibling(const std::filesystem::path& target);

/// Gives a complete file or folder its final name and syncs the folder's list of names to disk. An existing file, or an
/// empty folder, is replaced.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// The whole content of a file. Throws Error(invalid_file) where it is larger than `max_bytes`, before reading any of
/// it.
std::string read_file(const PosixFile& file, std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max());
std::string read_file(const std::filesystem::path& path,
                      std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max());

/// Writes a small file: temporary name in the same folder, then rename. Nothing is left under either name on failure.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace cermet
