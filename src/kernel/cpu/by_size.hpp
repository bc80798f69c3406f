// From an element's size to an unsigned type of that size: all that kernels which move elements need of the type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace cermet::cpu {

/// Calls body(T{}) with the unsigned integer type of 1, 2, 4 or 8 bytes.
template <class Body>
decltype(auto) by_element_size(std::size_t bytes, Body&& body) {
  switch (bytes) {
    case 1: return body(std::uint8_t{});
    case 2: return body(std::uint16_t{});
    case 4: return body(std::uint32_t{});
    case 8: return body(std::uint64_t{});
    default: break;
  }
  assertion_failed("an element of 1, 2, 4 or 8 bytes", __FILE_NAME__, __LINE__);
}

/// Minimum number of rows of `row_bytes` per thread: scheduling fewer costs more than copying them.
inline std::int64_t rows_per_thread(std::int64_t row_bytes) {
  constexpr std::int64_t least = 32768;
  return row_bytes >= least ? 1 : least / (row_bytes > 0 ? row_bytes : 1);
}

}  // namespace cermet::cpu
