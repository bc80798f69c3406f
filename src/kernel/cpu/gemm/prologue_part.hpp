// What comes before a product as a region of its own, and where its results go.
#pragma once

#include "kernel/cpu/before_anchor.hpp"

namespace cermet::cpu {

/// Whether an operator quantizes rows, each by itself.
bool quantizes_rows(OpKind op);
/// Why the rows that the last node before the anchor quantizes, with their scales, are not those of the product alone.
Decline declines_quantized(const Region& region);

struct ProloguePart {
  /// What is no result of the whole region: the rows that the anchor reads, and their scales.
  static constexpr std::size_t made_rows = std::size_t(-1), made_scales = std::size_t(-2);

  Region region;
  std::vector<std::optional<std::size_t>> operands;  ///< of the whole region
  std::vector<std::size_t> results;  ///< by result of this region: one of the whole, made_rows or made_scales
  std::vector<std::size_t> copies;   ///< results of the whole region that are the made rows

  /// Of a region whose anchor is not its first node.
  explicit ProloguePart(const Region& whole);
};

}  // namespace cermet::cpu
