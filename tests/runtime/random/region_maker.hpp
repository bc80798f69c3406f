// Random regions of a few bodies: the graphs of a kind differ in how many nodes there are, who reads whom, how many
// rows some have, what is excluded, and the options, and link the same code, because every region begins with one node
// of each body in the same order. So that there can be thousands.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace cermet::test {

/// Greatest value of T.
inline constexpr std::int64_t most_region_rows = 9;

struct RandomRegion {
  Graph graph;
  std::int64_t rows = 0;   ///< of values of T rows; 0: they are empty
  std::size_t breaks = 0;  ///< nodes that are excluded, each of which ends a region
};

/// Kinds: what products multiply.
enum class RegionKind : std::uint8_t { bf16, int8 };

/// Chains, diamonds and branches that do not depend on each other; rows of 256 and 512 elements, 0 to 9 rows of 64,
/// heads that share keys and wait for each other, products whose weights stream. The inputs are `x0`, `x1` (f32[1,
/// 256]) and `r` (f32[T, 64]).
RandomRegion random_region(std::uint64_t seed, RegionKind kind, const std::string& options);

/// Values of constants and inputs of such a graph. Inputs differ by `run`.
void fill_region_operand(const std::string& name, int run, const TensorView& to);

}  // namespace cermet::test
