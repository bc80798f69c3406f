// Pointers that git leaves in place of large files where Git LFS is not installed.
#pragma once

#include <filesystem>
#include <string_view>

namespace cermet {

/// The first bytes of every pointer.
inline constexpr std::string_view lfs_pointer_start = "version https://git-lfs.github.com/spec/v1";

/// Throws Error where a file that begins so is a pointer.
void refuse_lfs_pointer(const std::filesystem::path& file, std::string_view first_bytes);

}  // namespace cermet
