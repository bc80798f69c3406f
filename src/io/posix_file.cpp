#include "io/posix_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "io/output_target.hpp"

namespace cermet {
namespace {

constexpr int read_flags =
    O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // non-blocking: a pipe without a writer must not be waited for
constexpr std::size_t largest_transfer = std::size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB in one call

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action, int error) {
  fail(Status::io, "{}: cannot {}: {}", path.string(), action, std::generic_category().message(error));
}

/// Keeps SIGXFSZ, whose default is to kill the process, from a thread while it writes; the call then fails with EFBIG.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalBlocked() {
    const int error = errno;
    const timespec at_once{0, 0};
    if (!sigismember(&before_, SIGXFSZ)) {
      while (sigtimedwait(&signal_, nullptr, &at_once) > 0) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace

PosixFile PosixFile::open_for_reading(const std::filesystem::path& path) {
  return checked(path, ::open(path.c_str(), read_flags));
}

PosixFile PosixFile::open_for_reading(int folder, const std::filesystem::path& name) {
  return checked(name, ::openat(folder, name.c_str(), read_flags | O_NOFOLLOW));
}

PosixFile PosixFile::checked(const std::filesystem::path& path, int descriptor) {
  if (descriptor < 0 && errno == ENOENT) fail(Status::io, "{}: expected a file, found none", path.string());
  if (descriptor < 0) fail_io(path, "be opened", errno);
  PosixFile file(path, descriptor);
  struct stat status {};
  if (fstat(descriptor, &status) != 0) fail_io(path, "be examined", errno);
  if (!S_ISREG(status.st_mode))
    fail(Status::io, "{}: expected a regular file, found {}", path.string(),
         S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  return file;
}

PosixFile PosixFile::create(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_io(path, "be created", errno);
  return PosixFile(path, descriptor);
}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

PosixFile::~PosixFile() { close(); }

void PosixFile::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

PosixFile::Stamp PosixFile::stamp() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail_io(path_, "be examined", errno);
  return {status.st_size, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::size_t PosixFile::read(std::int64_t offset, std::span<std::byte> destination) const {
  std::size_t done = 0;
  while (done < destination.size()) {
    const std::size_t count = std::min(destination.size() - done, largest_transfer);
    const ssize_t got = pread(descriptor_, destination.data() + done, count, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(path_, "be read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void PosixFile::write(std::int64_t offset, std::span<const std::byte> source) {
  const FileSizeSignalBlocked no_signal;
  while (!source.empty()) {
    const ssize_t put = pwrite(descriptor_, source.data(), std::min(source.size(), largest_transfer), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail_io(path_, "be written", put == 0 ? ENOSPC : errno);
    source = source.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
}

void PosixFile::reserve(std::int64_t bytes) {
  if (bytes <= 0) return;
  const FileSizeSignalBlocked no_signal;
  while (fallocate(descriptor_, 0, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return;  // writing will find out
    fail(Status::io, "{}: cannot get {} bytes of disk space: {}", path_.string(), bytes,
         std::generic_category().message(errno));
  }
}

void PosixFile::sync_and_close() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail_io(path_, "be synced to disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail_io(path_, "be closed", errno);
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail_io(folder, "be opened", errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  ::close(descriptor_);
  if (reason == EWOULDBLOCK)
    fail(Status::io, "{}: expected a folder that no other run works in, found another run at work there",
         folder.string());
  if (reason == ENOLCK || reason == EOPNOTSUPP) descriptor_ = -1;  // file systems without locks
  else fail_io(folder, "be locked", reason);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::filesystem::path temporary_sibling(const std::filesystem::path& target) {
  static std::atomic<unsigned> count{0};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::filesystem::path path = target.has_filename() ? target : target.parent_path();  // "out/" names "out"
  path += fmt::format(".tmp-{:x}-{:x}-{:x}", getpid(), now.tv_nsec, count.fetch_add(1));
  return path;
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_io(to, "be given its name", errno);
  const std::filesystem::path folder = to.has_filename() ? to.parent_path() : to.parent_path().parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);  // best effort: some file systems cannot
  ::close(descriptor);
}

std::string read_file(const PosixFile& file, std::int64_t max_bytes) {
  const std::int64_t bytes = file.stamp().bytes;
  if (bytes > max_bytes)
    fail(Status::invalid_file, "{}: expected at most {} bytes, found {}", file.path().string(), max_bytes, bytes);
  std::string content(static_cast<std::size_t>(bytes), '\0');
  const std::size_t got = file.read(0, std::as_writable_bytes(std::span(content)));
  if (got != content.size()) fail(Status::io, "{}: expected {} bytes, could read {}", file.path().string(), bytes, got);
  return content;
}

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  return read_file(PosixFile::open_for_reading(path), max_bytes);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  const OutputTarget target = output_target(path);
  if (target.in_place) return write_in_place(target, content);
  const std::filesystem::path temporary = temporary_sibling(target.path);
  try {
    named_as(path, temporary, [&] {
      PosixFile file = PosixFile::create(temporary);
      if (target.permissions)
        chmod(temporary.c_str(), *target.permissions);  // best effort: some file systems have none
      file.write(0, std::as_bytes(std::span(content.data(), content.size())));
      file.sync_and_close();
      rename_file(temporary, target.path);
    });
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

}  // namespace cermet
