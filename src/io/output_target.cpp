#include "io/output_target.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/error.hpp"
#include "io/posix_file.hpp"

namespace cermet {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(const fs::path& path, const char* action, int error) {
  fail(Status::io, "{}: cannot {}: {}", path.string(), action, std::strerror(error));
}

/// "out/" names "out".
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

/// A link whose target is an open file and not a name: /dev/stdout ends in one.
bool is_link_of_process(const fs::path& link) {
  std::error_code ignored;
  return fs::weakly_canonical(link.parent_path(), ignored).string().starts_with("/proc/");
}

/// Follows links at the end of a path up to one that `stop` keeps.
template <class Stop>
fs::path followed(const fs::path& path, Stop&& stop) {
  constexpr int most_links = 40;  // as Linux
  fs::path at = without_slash(path);
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)) && !stop(at); ++links) {
    if (links == most_links) fail_at(path, "be followed", ELOOP);
    const fs::path target = fs::read_symlink(at, error);
    if (error) fail_at(path, "be followed", error.value());
    at = without_slash(at.parent_path() / target);
  }
  return at;
}

/// Of this process's standard output and error the one that a file is; -1 where it is neither.
int standard_descriptor(const struct stat& file) {
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (fstat(standard, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino) return standard;
  }
  return -1;
}

}  // namespace

fs::path behind_links(const fs::path& path) {
  return followed(path, [](const fs::path&) { return false; });
}

OutputTarget output_target(const fs::path& path) {
  require(!path.empty(), "output: expected a file's name, found an empty one");
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail(Status::io, "{}: expected a file, found a folder", path.string());
  if (!path.has_filename())
    fail(Status::io, "{}: expected a file's name, found one that ends in a slash", path.string());
  OutputTarget target;
  target.path =
      followed(path, [&](const fs::path& link) { return target.in_place = exists && is_link_of_process(link); });
  if (!exists) return target;
  target.descriptor = standard_descriptor(status);
  target.in_place = target.in_place || target.descriptor >= 0 || !S_ISREG(status.st_mode);
  target.permissions = status.st_mode & 0777u;
  return target;
}

void require_writable(const fs::path& path) {
  const OutputTarget target = output_target(path);
  if (target.in_place) {
    if (target.descriptor < 0 && access(target.path.c_str(), W_OK) != 0) fail_at(path, "be written", errno);
    return;
  }
  const fs::path temporary = temporary_sibling(target.path);
  named_as(path, temporary, [&] { PosixFile::create(temporary); });
  unlink(temporary.c_str());
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code ignored;
  if (error && !fs::is_directory(folder, ignored)) fail_at(folder, "be created", error.value());
}

void write_in_place(const OutputTarget& target, std::string_view content) {
  int descriptor = target.descriptor;
  if (descriptor < 0) descriptor = ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
  if (descriptor < 0) fail_at(target.path, "be opened", errno);
  if (target.descriptor == STDOUT_FILENO) std::fflush(stdout);  // what was printed before comes before
  int error = 0;
  while (!content.empty() && error == 0) {
    const ssize_t put = ::write(descriptor, content.data(), content.size());
    if (put >= 0) content.remove_prefix(static_cast<std::size_t>(put));
    else if (errno != EINTR) error = errno;
  }
  if (target.descriptor < 0 && ::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error != 0) fail_at(target.path, "be written", error);
}

}  // namespace cermet
