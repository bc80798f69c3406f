// Layers that repeat: what a page of a deep network folds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cermet::cli {

/// `times` copies of `length` elements, one after the other, from `first` on.
struct Repeat {
  std::size_t first = 0, length = 0, times = 0;
  friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// Repeats of a sequence, rising, none inside another: each time the one that covers most is taken, then what is left
/// on both sides is searched. Repeats that would hide fewer than four elements are left out. Quadratic in the length.
std::vector<Repeat> find_repeats(std::span<const int> sequence);

}  // namespace cermet::cli
