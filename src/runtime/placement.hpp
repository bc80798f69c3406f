// Blocks of memory, each needed for some steps, placed in one arena.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cermet {

/// A block of memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int32_t first = 0, last = 0;
};

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one per lifetime, multiples of the alignment
  std::int64_t bytes = 0;             ///< size of the arena
  std::int64_t lower_bound = 0;       ///< most bytes alive at one step: no placement is smaller
};

/// Places blocks so that no two that live at the same step overlap: largest first, each in the smallest gap that holds
/// it (greedy by size, Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). Throws
/// Error(out_of_memory) when sizes add up beyond 2^63.
Placement place(std::span<const Lifetime> lifetimes, std::int64_t alignment = 64);

/// The sum. Throws Error(out_of_memory) beyond 2^63.
std::int64_t checked_total(std::int64_t a, std::int64_t b);

}  // namespace cermet
