// Who compiles what, among threads and processes that share a cache of compiled kernels: those that start together, as
// the ranks of a group do, share out the work in place of each doing all of it.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace cermet::jit {

/// The right to compile an entry: a lock on a byte of a file in the cache's folder, which ends with this object or its
/// process. Two entries may share a byte.
class Claim {
 public:
  static constexpr const char* file_name = ".claims";

  /// Nothing while another has it, for `patience` at most. Where the folder cannot be written or has no locks, and
  /// without a folder, everybody gets it.
  static std::optional<Claim> take(const std::filesystem::path& folder, const std::string& digest,
                                   std::chrono::milliseconds patience);

  Claim(Claim&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Claim& operator=(Claim&&) = delete;
  ~Claim();

 private:
  explicit Claim(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;  ///< -1: nothing is locked
};

}  // namespace cermet::jit
