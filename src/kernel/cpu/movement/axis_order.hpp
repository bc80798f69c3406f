// The order that a transposition puts axes in.
#pragma once

#include <numeric>

#include "op/schema/problem.hpp"

namespace cermet::cpu {

/// For each axis of the result the axis of the operand; without a permutation they are reversed.
inline Ints order_of_axes(const Problem& transpose) {
  Ints order = transpose.attributes.integers("permutation");
  if (!order.empty()) return order;
  order.resize(transpose.input(0).dims.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace cermet::cpu
