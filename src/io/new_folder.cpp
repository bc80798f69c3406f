#include "io/new_folder.hpp"

#include <sys/stat.h>

#include <system_error>

#include "base/error.hpp"
#include "io/output_target.hpp"
#include "io/posix_file.hpp"

namespace cermet {

NewFolder::NewFolder(const std::filesystem::path& final_path)
    : final_(behind_links(final_path)), temporary_(temporary_sibling(final_)) {
  require_new_or_empty(final_);
  std::error_code error;
  if (!std::filesystem::create_directory(temporary_, error))
    fail(Status::io, "{}: cannot be created: {}", final_path.string(), error.message());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::commit() { rename_file(temporary_, final_); }

void require_new_or_empty(const std::filesystem::path& folder) {
  require(!folder.empty(), "output: expected a folder's name, found an empty one");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return;
  require(std::filesystem::is_directory(folder, error), "{}: expected a new or empty folder, found a file",
          folder.string());
  require(std::filesystem::is_empty(folder, error),
          "{}: expected a new or empty folder, found one that holds something", folder.string());
  struct stat own {
  }, above{};  // a volume of a container, say; what is complete could not be renamed to it
  const std::filesystem::path inside = behind_links(folder);
  const bool is_mounted =
      stat(inside.c_str(), &own) == 0 && stat((inside / "..").c_str(), &above) == 0 && own.st_dev != above.st_dev;
  require(!is_mounted, "{}: expected a folder that can be replaced, found a mounted one: name a new folder inside it",
          folder.string());
}

void require_disk_space(const std::filesystem::path& folder, std::int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.available >= static_cast<std::uintmax_t>(bytes)) return;
  fail(Status::io, "{}: expected {} bytes of free disk space, found {}", folder.string(), bytes, space.available);
}

}  // namespace cermet
