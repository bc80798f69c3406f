// Memory that shows who writes outside of it: the host faults within 64 KiB before and after, and the rest of the
// first and last page holds a pattern.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cermet {

class GuardedMemory {
 public:
  GuardedMemory() = default;
  /// Aligned to 64 bytes, as close to the end of its last page as that allows. Throws Error(out_of_memory).
  explicit GuardedMemory(std::int64_t bytes);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }
  /// Whether the pattern around it is whole.
  bool is_untouched_around() const;

  static constexpr unsigned char pattern = 0xa5;

 private:
  std::byte *mapped_ = nullptr, *data_ = nullptr;
  std::int64_t mapped_bytes_ = 0, bytes_ = 0;
};

}  // namespace cermet
