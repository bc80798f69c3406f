#include "jit/claim.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <thread>

namespace cermet::jit {

std::optional<Claim> Claim::take(const std::filesystem::path& folder, const std::string& digest,
                                 std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  if (folder.empty()) return Claim(-1);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Claim claim(::open((folder / file_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  std::uint32_t byte = 0;
  std::from_chars(digest.data(), digest.data() + digest.size() / 4, byte, 16);
  struct flock range {};  // of the open file, not of the process: its threads lock each other out, too
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  for (const Clock::time_point end = Clock::now() + patience; fcntl(claim.descriptor_, F_OFD_SETLK, &range) != 0;) {
    if (errno != EAGAIN && errno != EACCES) break;
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a wait in the kernel would have no end
  }
  return claim;
}

Claim::~Claim() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace cermet::jit
