// One entry of the cache: a folder of three files, read as one snapshot although other processes replace and delete it.
#pragma once

#include "jit/cache.hpp"

namespace cermet::jit {

struct ReadEntry {
  enum class State : unsigned char { absent, sound, damaged } state = State::absent;
  std::string problem;  ///< of a damaged one
  std::string key, name;
  StoredImage image;              ///< its bytes only if requested
  std::int64_t bytes = 0;         ///< of the files
  std::int64_t last_used_ns = 0;  ///< since 1970
};

/// Reads an entry and compares everything with its checksums, the image's bytes too where `whole`. An entry that
/// vanishes meanwhile is absent.
ReadEntry read_entry(const std::filesystem::path& folder, bool whole);
/// Writes the three files into an existing folder. Throws Error(io).
void write_entry(const std::filesystem::path& folder, const std::string& key, const std::string& name,
                 const StoredImage& image);
/// Marks an entry as used now, if the folder may be written.
void touch_entry(const std::filesystem::path& folder);
/// Deletes an entry's folder with the files an entry has; a folder that contains anything else stays. Returns whether
/// it is gone.
bool delete_entry(const std::filesystem::path& folder);

}  // namespace cermet::jit
