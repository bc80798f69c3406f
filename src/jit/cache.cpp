#include "jit/cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "io/cache_folder.hpp"
#include "io/digest.hpp"
#include "jit/cache_entry.hpp"
#include "jit/claim.hpp"

namespace cermet::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".new-";  ///< entries being stored or deleted
constexpr std::chrono::hours abandoned(1);              ///< age after which a temporary folder is abandoned

bool is_digest(std::string_view name) {
  return name.size() == 32 &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Names in a folder; empty where it cannot be read, which `error` says.
std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::error_code ignored;
  return names_in(folder, ignored);
}

/// A new temporary folder; throws Error(io).
fs::path make_temporary(const fs::path& folder) {
  std::string name = (folder / fmt::format("{}XXXXXX", temporary_prefix)).string();
  if (!mkdtemp(name.data())) fail(Status::io, "{}: {}", folder.string(), std::strerror(errno));
  return name;
}

/// Renames whatever has an entry's name, so that readers see it whole or not at all, and deletes the files of an entry.
/// Returns whether it is gone.
bool take_away(const fs::path& folder, const fs::path& entry) {
  struct stat status {};
  if (lstat(entry.c_str(), &status) != 0) return true;
  const fs::path away = make_temporary(folder), old = away / "old";
  bool gone = true;
  if (rename(entry.c_str(), old.c_str()) == 0) gone = delete_entry(old) || unlink(old.c_str()) == 0;
  if (!gone) gone = rename(old.c_str(), entry.c_str()) != 0;  // something else is in it, which is not ours to delete
  rmdir(away.c_str());
  return gone;
}

/// Temporary folders of processes that died.
void delete_abandoned(const fs::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(temporary_prefix)) continue;
    struct stat status {};
    if (lstat((folder / name).c_str(), &status) != 0 || now - std::chrono::seconds(status.st_mtim.tv_sec) < abandoned)
      continue;
    delete_entry(folder / name / "old");
    delete_entry(folder / name);
  }
}

}  // namespace

DiskCache& DiskCache::process() {
  static DiskCache cache(cache_folder(), env::integer(env::Name::CERMET_CACHE_BYTES));
  return cache;
}

void DiskCache::warn_once(const std::string& what, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!reported_.insert(what).second) return;
  }
  log().warn("{}", message);
}

void DiskCache::use(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  used_.insert(digest);
}

void DiskCache::read_also(fs::path folder) {
  const std::lock_guard lock(mutex_);
  if (std::find(read_folders_.begin(), read_folders_.end(), folder) == read_folders_.end())
    read_folders_.push_back(std::move(folder));
}

std::vector<std::string> DiskCache::used() const {
  const std::lock_guard lock(mutex_);
  return {used_.begin(), used_.end()};
}

std::int64_t DiskCache::missed() const {
  const std::lock_guard lock(mutex_);
  return missed_;
}

std::optional<StoredImage> DiskCache::find(const std::string& key) {
  std::optional<StoredImage> found = find_own(key);
  const std::string name = digest(key);
  std::vector<fs::path> others;
  {
    const std::lock_guard lock(mutex_);
    others = read_folders_;
  }
  for (const fs::path& folder : others) {
    if (found) break;
    ReadEntry entry = read_entry(folder / name, true);
    if (entry.state == ReadEntry::State::sound && entry.key == key) found = std::move(entry.image);
  }
  if (!found) {
    const std::lock_guard lock(mutex_);
    ++missed_;
  }
  return found;
}

std::optional<StoredImage> DiskCache::find_own(const std::string& key) {
  if (!enabled()) return std::nullopt;
  const std::string name = digest(key);
  const fs::path folder = folder_ / name;
  ReadEntry entry = read_entry(folder, true);
  if (entry.state == ReadEntry::State::damaged)
    warn_once(folder.string(), fmt::format("cache of compiled kernels: {} is damaged and will be compiled again: {}",
                                           folder.string(), entry.problem));
  if (entry.state != ReadEntry::State::sound || entry.key != key) return std::nullopt;
  use(name);
  touch_entry(folder);
  return std::move(entry.image);
}

void DiskCache::store(const std::string& key, const std::string& name, const StoredImage& image) {
  if (!enabled()) return;
  const std::string key_digest = digest(key);
  const fs::path final_name = folder_ / key_digest;
  fs::path temporary;
  try {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) fail(Status::io, "{}: {}", folder_.string(), error.message());
    temporary = make_temporary(folder_);
    write_entry(temporary, key, name, image);
    use(key_digest);
    {
      const std::lock_guard lock(mutex_);
      untrimmed_bytes_ += static_cast<std::int64_t>(key.size() + image.bytes.size());
    }
    // Another process may put the same entry there, or delete it, at any time; a few turns are enough, and without the
    // entry nothing is lost.
    for (int turn = 0; turn < 4; ++turn) {
      if (rename(temporary.c_str(), final_name.c_str()) == 0) return;
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
        fail(Status::io, "{}: {}", final_name.string(), std::strerror(errno));
      const ReadEntry there = read_entry(final_name, true);
      if (there.state == ReadEntry::State::sound && there.key == key) break;
      if (there.state != ReadEntry::State::absent) take_away(folder_, final_name);
    }
  } catch (const std::exception& error) {
    // Once for all kernels, whose files have different names in messages.
    warn_once("store",
              fmt::format(
                  "cache of compiled kernels: {} cannot be written, so kernels are compiled again in every process: {}",
                  folder_.string(), error.what()));
  }
  if (!temporary.empty()) delete_entry(temporary);
}

void DiskCache::trim_if_due() {
  {
    const std::lock_guard lock(mutex_);
    if (untrimmed_bytes_ <= (was_trimmed_ ? max_bytes_ / 64 : 0)) return;
    untrimmed_bytes_ = 0;
    was_trimmed_ = true;
  }
  trim();
}

void DiskCache::trim() {
  if (!enabled()) return;
  try {
    delete_abandoned(folder_);
    std::vector<Entry> all = entries(false);
    std::int64_t total = 0;
    for (const Entry& entry : all) total += entry.bytes;
    const std::lock_guard lock(mutex_);
    for (auto entry = all.rbegin(); entry != all.rend() && total > max_bytes_; ++entry)
      if (!used_.contains(entry->digest) && take_away(folder_, folder_ / entry->digest)) total -= entry->bytes;
  } catch (const Error& error) {
    warn_once("trim", fmt::format("cache of compiled kernels: {} cannot be kept within {} bytes: {}", folder_.string(),
                                  max_bytes_, error.what()));
  }
}

std::vector<DiskCache::Entry> DiskCache::entries(bool whole) const {
  std::vector<Entry> list;
  for (const std::string& name : names_in(folder_)) {
    if (!is_digest(name)) continue;
    const ReadEntry read = read_entry(folder_ / name, whole);
    if (read.state != ReadEntry::State::absent)
      list.push_back({name, read.name, read.bytes, read.last_used_ns, read.image.seconds, read.problem});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Entry& a, const Entry& b) { return a.last_used_ns > b.last_used_ns; });
  return list;
}

std::string DiskCache::problem() const {
  if (folder_.empty()) return "no folder: neither CERMET_CACHE_DIR nor HOME is set";
  if (max_bytes_ == 0) return "off: CERMET_CACHE_BYTES is 0";
  std::error_code error;
  names_in(folder_, error);
  return !error || error == std::errc::no_such_file_or_directory ? ""
                                                                 : fmt::format("cannot be read: {}", error.message());
}

std::vector<std::string> DiskCache::strangers() const {
  std::vector<std::string> names = names_in(folder_);
  std::erase_if(names, [](const std::string& name) {
    return is_digest(name) || name.starts_with(temporary_prefix) || name == limits_folder || name == tuning_folder ||
           name == foreign_kernels_folder || name == Claim::file_name;
  });
  return names;
}

bool DiskCache::remove(const std::string& digest) const {
  CERMET_ASSERT(is_digest(digest));
  return take_away(folder_, folder_ / digest);
}

}  // namespace cermet::jit
