// Slices that rows of coordinates pick: for the kernels of gather_nd and scatter_nd.
#pragma once

#include <cstring>

#include "kernel/cpu/movement/axes.hpp"

namespace cermet::cpu {

/// The offset, in elements, that a row of coordinates has in x; coordinate j is along axis first + j. Throws where one
/// is out of range.
std::int64_t slice_offset(const TensorView& x, int first, const TensorView& indices, std::int64_t row_offset,
                          std::string_view op);

/// A slice of two operands: an inner run that is contiguous in both, and the axes around it.
struct Slice {
  StridedAxes<2> outer;
  std::int64_t runs = 1, run = 1;  ///< number of inner runs and elements of each

  /// The axes of `a` from `from_a` on, which are those of `b` from `from_b` on.
  Slice(const TensorView& a, int from_a, const TensorView& b, int from_b);
  std::int64_t elements() const { return runs * run; }
  /// Calls body(offset in a, offset in b) for every run.
  template <class Body>
  void for_runs(Body&& body) const {
    Walk<2> walk(outer);
    for (std::int64_t i = 0; i < runs; ++i, walk.next()) body(walk.offset[0], walk.offset[1]);
  }
};

}  // namespace cermet::cpu
