#include "cli/ui/process.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.hpp"
#include "cli/ui/console.hpp"
#include "cli/ui/interrupt.hpp"

namespace cermet::cli {
namespace {

/// A line "KEY:   123 kB" of a file under /proc, in bytes; -1 where it is not there.
std::int64_t proc_bytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (word != key) continue;
    std::int64_t kibibytes = -1;
    return file >> kibibytes ? kibibytes * 1024 : -1;
  }
  return -1;
}

}  // namespace

std::int64_t peak_memory_bytes() { return std::max<std::int64_t>(proc_bytes("/proc/self/status", "VmHWM:"), 0); }

std::int64_t resident_bytes() { return std::max<std::int64_t>(proc_bytes("/proc/self/status", "VmRSS:"), 0); }

std::int64_t available_memory_bytes() {
  const std::int64_t bytes = proc_bytes("/proc/meminfo", "MemAvailable:");
  return bytes < 0 ? std::numeric_limits<std::int64_t>::max() : bytes;
}

void require_memory(std::int64_t bytes, const std::string& what) {
  const std::int64_t available = available_memory_bytes();
  if (bytes > available)
    fail(Status::out_of_memory, "memory: expected {} for {}, found {} available",
         bytes_text(static_cast<double>(bytes)), what, bytes_text(static_cast<double>(available)));
}

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    stop_if_interrupted();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Status::io, "standard input: expected text, found: {}", std::strerror(errno));
    if (count == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace cermet::cli
