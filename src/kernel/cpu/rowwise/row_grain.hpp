// How many rows are worth a thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cermet::cpu {

/// For ThreadPool::parallel_for over rows: all of them where they have 2,048 elements at most, which are done before
/// another thread has begun, a microsecond.
constexpr std::int64_t row_grain(std::int64_t rows, std::int64_t length) {
  return rows * length <= 2048 ? std::max<std::int64_t>(1, rows) : 1;
}

}  // namespace cermet::cpu
