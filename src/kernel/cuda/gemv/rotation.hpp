// rope_and_cache after a product that makes queries, keys and values: how a region is taken apart for it, and what a
// launch is given (device/gemv/rope.cuh).
#pragma once

#include "kernel/cuda/device/tile/rotation.hpp"
#include "kernel/decline.hpp"
#include "kernel/kernel.hpp"
#include "op/kv_cache.hpp"

namespace cermet::cuda {

class RotatedHeads {
 public:
  /// Whether a region ends with it.
  static bool end(const Region& region);
  /// Why heads are not rotated in the store of the product; for regions that end with it.
  static Decline declines(const Region& region);
  /// The region without what follows the product. Its operands keep their places; those of the others are not read.
  static Region product_of(const Region& region);

  /// The region must not be declined.
  explicit RotatedHeads(const Region& region);
  rotation::Config config(const Region& region) const;
  std::int64_t pairs() const { return pairs_; }
  /// Of a number that divides this, pairs that begin at a multiple of it are neighbours: their first columns, and their
  /// second ones.
  std::int64_t most_neighbours() const { return most_neighbours_; }
  /// The rotated queries as rows of pairs, of which the stride from row to row is theirs.
  TensorView rows(const LaunchArgs& args) const;
  /// Of rows from `row` on.
  void set(const LaunchArgs& args, rotation::Operands& p, std::int64_t row = 0) const;

 private:
  struct OperandIndices {
    std::size_t cos, sin, positions, slots, q, k_cache, v_cache;  ///< operands of the launch; from q on results
  };
  OperandIndices at_;
  KvCacheAxes axes_;
  std::int64_t pairs_, most_neighbours_;
};

}  // namespace cermet::cuda
