// What the stress test does at the points of pools: mostly nothing, else it gives the core away or sleeps, so that
// threads meet in orders that they rarely do.
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/pool_point.hpp"

namespace cermet {

void pool_point() {
  thread_local std::uint64_t state = std::hash<std::thread::id>{}(std::this_thread::get_id()) | 1;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  const auto drawn = static_cast<int>(state >> 40) & 1023;
  if (drawn < 4) std::this_thread::sleep_for(std::chrono::microseconds(state >> 56));
  else if (drawn < 40) std::this_thread::yield();
  else if (drawn < 80)
    for (int i = 0; i < 2000; ++i) asm volatile("" ::: "memory");
}

}  // namespace cermet
