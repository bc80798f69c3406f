// How values of a graph are referred to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cermet {

/// A value of a graph, by position. -1 stands for an optional operand that is not given.
struct ValueId {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  std::size_t at() const { return static_cast<std::size_t>(index); }
  friend bool operator==(ValueId, ValueId) = default;
};

}  // namespace cermet
