// Kernels from outside on disk: a folder for each, with the manifest, its files and entry.json, which has their
// digests. Folders appear complete or not at all.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foreign/manifest.hpp"

namespace cermet::foreign {

struct StoredKernel {
  std::string name;
  std::filesystem::path folder;
  std::string added;                           ///< "2026-03-01 14:05:09", UTC
  std::string digest;                          ///< of everything that decides what the kernel computes
  std::map<std::string, std::string> digests;  ///< by file
  std::optional<Manifest> manifest;            ///< none where `problem` says why
  std::string problem;
};

/// "2026-03-01 14:05:09" in UTC.
std::string time_text(std::int64_t seconds_since_1970);

/// The user's own folder, inside the cache folder; empty where there is none.
std::filesystem::path own_store();
/// That, and those of CERMET_KERNELS, which are only read.
std::vector<std::filesystem::path> store_folders();
/// What the folders have, damaged ones too; sorted by name within each. The manifest, small, is read and checked; other
/// files are when they are needed.
std::vector<StoredKernel> stored_kernels();
/// The one of a name; throws Error that lists those there are.
StoredKernel stored_kernel(std::string_view name);
/// Deletes one from the user's own folder. Throws Error where it is in another, or in none.
void remove_kernel(std::string_view name);

/// A copy of a manifest and its files under a temporary name, deleted unless commit() was called.
class StagedKernel {
 public:
  /// Reads, checks and copies. Throws Error naming file and field; also where the name is one of our own kernels', or,
  /// without `replace`, taken.
  StagedKernel(const std::filesystem::path& manifest, bool replace);
  ~StagedKernel();
  StagedKernel(const StagedKernel&) = delete;
  StagedKernel& operator=(const StagedKernel&) = delete;

  const StoredKernel& kernel() const { return kernel_; }
  std::filesystem::path manifest_file() const { return temporary_ / "manifest.json"; }
  /// Gives it its name, in one step in place of one that is there.
  void commit();

 private:
  void copy(const std::filesystem::path& manifest_file, const Manifest& manifest);

  std::filesystem::path final_, temporary_;
  StoredKernel kernel_;
};

}  // namespace cermet::foreign
