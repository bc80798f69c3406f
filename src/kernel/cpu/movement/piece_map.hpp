// Operators that only move elements, composed: where each piece of a result lies in the operands.
#pragma once

#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// The first nodes of a region, where they are reshapes, transposes, slices, joints and expansions of constant sizes.
/// Composed once, at binding.
class PieceMap {
 public:
  static constexpr std::int64_t least_piece_bytes = 64;

  /// Whether the operator is one of them.
  static bool knows(OpKind op);
  /// Why result `place` of the first `count` nodes is not copied in pieces, of which whole ones are in a run of
  /// `length` elements (0: in all of them).
  static Decline declines(const Region& region, std::size_t count, const RegionPlace& place, std::int64_t length = 0);

  PieceMap() = default;
  PieceMap(const Region& region, std::size_t count, const RegionPlace& place, std::int64_t length = 0);

  explicit operator bool() const { return piece_ > 0; }
  std::int64_t pieces() const { return static_cast<std::int64_t>(from_.size()); }
  std::int64_t piece() const { return piece_; }  ///< elements
  /// Copies elements [first, last) of the result, in row-major order, to memory where they follow one another.
  void copy(const LaunchArgs& args, std::int64_t first, std::int64_t last, std::byte* to) const;

 private:
  struct Source {
    std::uint32_t operand;  ///< of the region
    std::uint32_t piece;    ///< of the operand
  };
  std::int64_t piece_ = 0;
  std::vector<Source> from_;
};

}  // namespace cermet::cpu
