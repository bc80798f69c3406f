// Reductions along any set of axes: shared by the reduction operators and the collectives.
#pragma once

#include "base/tensor.hpp"
#include "base/thread_pool.hpp"
#include "op/reduction.hpp"

namespace cermet::cpu {

/// y = x reduced along the axes whose bits are set in `reduced`; y has one dimension for each other axis of x, in
/// order. f32, bf16 and f16 convert between x and y; f64, integers and bool have one type. A result's terms are taken
/// in index order where the last axis is kept, of one large image in a fixed number of slices, and over a fixed number
/// of lanes where it is reduced.
/// `wraps`: sums of integers wrap around.
void reduce_axes(Reduction kind, const TensorView& x, std::uint32_t reduced, const TensorView& y, ThreadPool& pool,
                 bool wraps = false);

}  // namespace cermet::cpu
