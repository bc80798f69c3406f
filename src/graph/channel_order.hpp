// Axes of images in both orders: channels first, [N, C, ..], and channels last, [N, .., C].
#pragma once

#include <cstdint>

#include "op/schema/attributes.hpp"

namespace cermet {

/// Axis of [N, .., C] that axis a of [N, C, ..] becomes.
inline std::int64_t moved_axis(std::int64_t a, int rank) { return a == 0 ? 0 : a == 1 ? rank - 1 : a - 1; }

/// Entries by axis in the order of the channels-last axes.
template <class List>
List moved_entries(const List& list, int rank) {
  List moved = list;
  for (int a = 0; a < rank; ++a)
    moved[static_cast<std::size_t>(moved_axis(a, rank))] = list[static_cast<std::size_t>(a)];
  return moved;
}

/// Permutations of transpose, there and back.
inline Ints to_last(int rank) {
  Ints permutation(static_cast<std::size_t>(rank));
  for (int a = 0; a < rank; ++a) permutation[static_cast<std::size_t>(moved_axis(a, rank))] = a;
  return permutation;
}

inline Ints to_first(int rank) {
  Ints permutation(static_cast<std::size_t>(rank));
  for (int a = 0; a < rank; ++a) permutation[static_cast<std::size_t>(a)] = moved_axis(a, rank);
  return permutation;
}

}  // namespace cermet
