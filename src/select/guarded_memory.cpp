#include "select/guarded_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/buffer.hpp"

namespace cermet {
namespace {

constexpr std::int64_t guard = 64 << 10;  // a multiple of every page size
constexpr std::int64_t page = 4096;       // at least; larger pages only make more of the guards

}  // namespace

GuardedMemory::GuardedMemory(std::int64_t bytes) : bytes_(bytes) {
  const std::int64_t open = round_up(std::max<std::int64_t>(bytes, 1), guard);
  mapped_bytes_ = open + 2 * guard;
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(mapped_bytes_), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail(Status::out_of_memory, "memory: expected room for {} bytes, found none", bytes);
  mapped_ = static_cast<std::byte*>(mapped);
  std::memset(mapped_, pattern, static_cast<std::size_t>(mapped_bytes_));
  data_ = mapped_ + guard + (open - round_up(bytes, AlignedBuffer::alignment));
  // What lies before the first page of the data is out of bounds, too.
  const std::int64_t before = (data_ - mapped_) / page * page;
  mprotect(mapped_, static_cast<std::size_t>(before), PROT_NONE);
  mprotect(mapped_ + guard + open, static_cast<std::size_t>(guard), PROT_NONE);
}

GuardedMemory::~GuardedMemory() {
  if (mapped_) munmap(mapped_, static_cast<std::size_t>(mapped_bytes_));
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }

GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool GuardedMemory::is_untouched_around() const {
  if (!mapped_) return true;
  const auto is_pattern = [](std::byte b) { return b == std::byte{pattern}; };
  const std::byte* const first = mapped_ + (data_ - mapped_) / page * page;
  return std::all_of(first, static_cast<const std::byte*>(data_), is_pattern) &&
         std::all_of(data_ + bytes_, mapped_ + mapped_bytes_ - guard, is_pattern);
}

}  // namespace cermet
