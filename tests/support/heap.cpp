#include "tests/support/heap.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> allocations{0};
thread_local std::int64_t allocations_left = cermet::heap::never;

void* allocate(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1);
  void* memory =
      allocations_left-- > 0 ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment) : nullptr;
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

namespace cermet::heap {
std::int64_t allocations() { return ::allocations.load(); }
void fail_after(std::int64_t count) { allocations_left = count; }
}  // namespace cermet::heap

void* operator new(std::size_t size) { return allocate(size, 16); }
void* operator new[](std::size_t size) { return allocate(size, 16); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
