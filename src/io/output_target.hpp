// Where output goes that a user names by a path: through links, and into devices and pipes as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cermet {

/// The file that output for a path is written to.
struct OutputTarget {
  std::filesystem::path path;           ///< where links end, also where there is nothing yet
  int descriptor = -1;                  ///< of standard output or error where the path names that; not ours to close
  bool in_place = false;                ///< a device, a pipe or an open file, which is written to and never replaced
  std::optional<unsigned> permissions;  ///< of the file that is replaced
};

/// Throws Error(io) naming the path where it is a folder, or its links lead nowhere.
OutputTarget output_target(const std::filesystem::path& path);
/// Throws Error(io) naming the path unless a file could be written there now: before work that would be lost otherwise.
/// Leaves nothing behind.
void require_writable(const std::filesystem::path& path);
/// A path without links at its end, for what is renamed to it: a folder that a link names stays where it is.
std::filesystem::path behind_links(const std::filesystem::path& path);
/// Makes a folder and those above it. Throws Error(io) naming it where that fails.
void make_folders(const std::filesystem::path& folder);

/// Writes to a target that is `in_place`.
void write_in_place(const OutputTarget& target, std::string_view content);

/// Calls body(). Errors about the file `temporary` name `path`: its user knows no other name.
template <class Body>
void named_as(const std::filesystem::path& path, const std::filesystem::path& temporary, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    std::string text = error.what();
    if (text.starts_with(temporary.string())) text.replace(0, temporary.string().size(), path.string());
    throw Error(error.status(), text);
  }
}

}  // namespace cermet
