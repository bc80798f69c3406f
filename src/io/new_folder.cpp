#include "io/new_folder.hpp"

#include <system_error>

#include "base/error.hpp"
#include "io/posix_file.hpp"

namespace cermet {

NewFolder::NewFolder(const std::filesystem::path& final_path) : final_(final_path), temporary_(temporary_sibling(final_path)) {
  require_new_or_empty(final_);
  std::error_code error;
  if (!std::filesystem::create_directory(temporary_, error)) fail(Status::io, "{}: cannot be created: {}", temporary_.string(), error.message());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::commit() { rename_file(temporary_, final_); }

void require_new_or_empty(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return;
  require(std::filesystem::is_directory(folder, error), "{}: expected a new or empty folder, found a file", folder.string());
  require(std::filesystem::is_empty(folder, error), "{}: expected a new or empty folder, found one that holds something", folder.string());
}

void require_disk_space(const std::filesystem::path& folder, std::int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.available >= static_cast<std::uintmax_t>(bytes)) return;
  fail(Status::io, "{}: expected {} bytes of free disk space, found {}", folder.string(), bytes, space.available);
}

}  // namespace cermet
