// What sizes decide: answers that hold for all values of their symbols, and integers that are computed of them for each
// run.
#pragma once

#include <optional>

#include "base/buffer.hpp"
#include "base/dim.hpp"

namespace cermet::onnx {

/// Nothing where some sizes in the ranges say yes and others no.
std::optional<bool> equals(const Dim& a, const Dim& b, const SymbolRanges& ranges);
std::optional<bool> is_less(const Dim& a, const Dim& b, const SymbolRanges& ranges);
/// min and max, without the one that never is it.
Dim least_of(const Dim& a, const Dim& b, const SymbolRanges& ranges);
Dim greatest_of(const Dim& a, const Dim& b, const SymbolRanges& ranges);

/// first, first + step, .., `count` numbers.
struct Progression {
  Dim first = 0, count = 0;
  std::int64_t step = 1;
  friend bool operator==(const Progression&, const Progression&) = default;
};
/// A bound of a slice: a negative one counts from the end of the axis.
struct SliceBound {
  Dim at;
  bool is_negative = false;  ///< for all sizes
};
/// The positions that a slice takes of an axis, with ONNX's clamping.
Progression sliced_positions(const SliceBound& start, const SliceBound& end, std::int64_t step, const Dim& size,
                             const SymbolRanges& ranges);

/// The ranges cut so that in each part a dimension is negative, 0 or positive for all sizes; nothing where cuts of one
/// symbol's range do not do that.
std::vector<SymbolRanges> cut_by_sign(const SymbolRanges& ranges, const Dim& dim);

/// A tensor whose elements follow from sizes: an input of the graph that each run computes.
struct SizeTensor {
  TensorType type;
  Dims elements;         ///< each of them, or
  Progression counting;  ///< where `elements` is empty, along the only dimension

  /// For one run's sizes. Throws Error where a number passes 2^63.
  OwnedTensor value(const SymbolValues& sizes) const;
  friend bool operator==(const SizeTensor&, const SizeTensor&) = default;
};

}  // namespace cermet::onnx
