// How many rows are worth a thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cermet::cpu {

/// For ThreadPool::parallel_for over rows of so many elements: fewer than 2,048 elements are done before another thread has begun, which takes a microsecond.
constexpr std::int64_t row_grain(std::int64_t length) { return std::max<std::int64_t>(1, 2048 / std::max<std::int64_t>(1, length)); }

}  // namespace cermet::cpu
