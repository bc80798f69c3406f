#include "io/git_lfs.hpp"

#include "base/error.hpp"

namespace cermet {

void refuse_lfs_pointer(const std::filesystem::path& file, std::string_view first_bytes) {
  if (first_bytes.starts_with(lfs_pointer_start))
    fail(Status::invalid_file,
         "{}: expected the file itself, found a pointer of Git LFS; run git lfs pull in that folder", file.string());
}

}  // namespace cermet
