// A folder that gets its name when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>

namespace cermet {

/// A folder under a temporary name beside its final one, removed with everything in it unless commit() was called.
class NewFolder {
 public:
  /// Throws Error where something other than an empty folder has the final name, or where the folder cannot be made.
  explicit NewFolder(const std::filesystem::path& final_path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// The folder under its temporary name, which is where to write until commit().
  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path final_, temporary_;
};

/// Throws Error naming the folder unless nothing or an empty folder has this name.
void require_new_or_empty(const std::filesystem::path& folder);
/// Throws Error(io) where the disk under `folder` has less than `bytes` free.
void require_disk_space(const std::filesystem::path& folder, std::int64_t bytes);

}  // namespace cermet
