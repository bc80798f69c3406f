// Reductions along any set of axes: shared by the reduction operators and the collectives.
#pragma once

#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/reduction.hpp"

namespace cermet::cuda {

/// A reduction's types and whether the last axis of its operand is among the reduced ones: what its programs depend on.
struct ReducePlan {
  Reduction kind = Reduction::sum;
  DType x = DType::f32, out = DType::f32;
  bool rows = true;    ///< the last axis is reduced, or there is none
  bool wraps = false;  ///< sums of integers
  bool splits = true;  ///< the terms of few results may be split over blocks
};

std::vector<Program> reduce_programs(const ReducePlan& plan);
/// Scratch for reductions of up to `terms` elements each to `results` results.
std::int64_t reduce_workspace(const ReducePlan& plan, std::int64_t terms);

/// y = x reduced along the axes whose bits are set in `reduced`; y has one dimension for each other axis of x, in
/// order. `first` is the index of reduce_programs() in the kernel's programs.
void enqueue_reduce(const LaunchArgs& args, std::size_t first, const ReducePlan& plan, const TensorView& x,
                    std::uint32_t reduced, const TensorView& y);

}  // namespace cermet::cuda
