// Compiled images on disk, found by what they were compiled from. Any number of processes may share a folder.
//
// An entry is a folder named by the digest of its key, with three files:
//   source.cu   the key: toolchain, architecture, options and headers' digests as comments, then the generated source.
//   Compared in full, so that a
//               digest that two keys share is a miss and never a wrong image.
//   image       cubin, PTX or LTO-IR
//   entry.json  sizes and checksums of the two, name, compile time, the compiler's report
// It is written under a temporary name and renamed, so it is there completely or not at all. An entry that is damaged
// (or foreign) is reported, never loaded, and replaced when its image has been recompiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cermet::jit {

struct StoredImage {
  std::vector<std::byte> bytes;
  std::string log;     ///< the compiler's report
  double seconds = 0;  ///< compile time
};

class DiskCache {
 public:
  /// Location and size from the environment (CERMET_CACHE_DIR, CERMET_CACHE_BYTES); shared by the process.
  static DiskCache& process();
  /// An empty folder, or 0 bytes, stores and finds nothing.
  DiskCache(std::filesystem::path folder, std::int64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t max_bytes() const { return max_bytes_; }
  bool enabled() const { return !folder_.empty() && max_bytes_ > 0; }

  /// Why it holds nothing; empty where it may, also where the folder is not there yet.
  std::string problem() const;

  /// The image that was stored under this key; marks it as used now. Thread-safe.
  std::optional<StoredImage> find(const std::string& key);
  /// What others have stored under a key for which find() found nothing. Thread-safe.
  std::optional<StoredImage> find_since(const std::string& key) { return find_own(key); }
  /// Stores an image; `name` is for readers. Where the folder cannot be written, that is reported once and nothing
  /// happens. Thread-safe.
  void store(const std::string& key, const std::string& name, const StoredImage& image);
  /// Deletes the least recently used entries until the folder is within its bound, but none that this object found or
  /// stored, and what processes that died left behind.
  void trim();
  /// The same when this object has stored something for the first time, and then whenever it has stored 1/64 of the
  /// bound: looking through the folder takes time for every entry.
  void trim_if_due();

  /// Has entries of another folder found too, which is only read.
  void read_also(std::filesystem::path folder);
  /// Digests of the entries that this object found or stored.
  std::vector<std::string> used() const;
  /// How often find() found nothing: what had to be compiled.
  std::int64_t missed() const;

  struct Entry {
    std::string digest, name;
    std::int64_t bytes = 0;         ///< of its files
    std::int64_t last_used_ns = 0;  ///< since 1970
    double compile_seconds = 0;
    std::string problem;  ///< why it would not be loaded; empty for an intact one
  };
  /// All entries, most recently used first. With `whole`, images are read and compared with their checksums.
  std::vector<Entry> entries(bool whole) const;
  /// A folder inside for limits of devices, which are kept with the kernels (runtime/limits_store.hpp).
  static constexpr const char* limits_folder = "limits";
  /// A folder inside for measured choices (select/tuning.hpp).
  static constexpr const char* tuning_folder = "tuning";
  /// Names in the folder that are neither entries, nor temporary, nor another part of the cache; they are never
  /// touched.
  std::vector<std::string> strangers() const;
  /// Deletes an entry, intact or not, unless its folder contains anything else. Returns whether it is gone. Throws
  /// Error(io) where the folder cannot be written.
  bool remove(const std::string& digest) const;

 private:
  std::optional<StoredImage> find_own(const std::string& key);
  void warn_once(const std::string& what, const std::string& message);
  void use(const std::string& digest);

  std::filesystem::path folder_;
  std::int64_t max_bytes_;
  mutable std::mutex mutex_;
  std::vector<std::filesystem::path> read_folders_;  ///< folders that are only read
  std::int64_t missed_ = 0;
  std::int64_t untrimmed_bytes_ = 0;  ///< stored since trim_if_due() trimmed
  bool was_trimmed_ = false;
  std::set<std::string> used_;      ///< digests that trim leaves alone
  std::set<std::string> reported_;  ///< what was warned of
};

}  // namespace cermet::jit
