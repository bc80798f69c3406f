// Allocations through operator new, for programs that heap.cpp is linked into: it replaces the operators.
#pragma once

#include <cstdint>
#include <limits>

namespace cermet::heap {

/// Since the program began, of all threads.
std::int64_t allocations();

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
/// Lets `count` allocations of this thread succeed and those after them fail.
void fail_after(std::int64_t count);

}  // namespace cermet::heap
