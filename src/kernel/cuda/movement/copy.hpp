// The one copy behind reshape, transpose, slice, concat, split, expand and the collectives.
#pragma once

#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

Program copy_program();
Program transpose_program();
Program interleave_program();

/// Operand 0 is the source, operand 1 the destination.
using CopyAxes = AxesBuilder<2>;

/// A block of elements between two layouts with any strides (in elements; 0 repeats, negative walks backwards).
/// Memories do not overlap, but that a source may be null: then zeros are written.
struct StridedCopy {
  Shape shape;
  const void* from = nullptr;
  Shape from_strides;
  void* to = nullptr;
  Shape to_strides;
  std::int64_t element_bytes = 0;
};

/// Its axes with the strides of both.
CopyAxes axes_of_copy(const StridedCopy& block);

/// `copy` is the index of copy_program() in the kernel's programs.
void enqueue_copy(const TaskQueue& queue, std::size_t copy, const StridedCopy& block);
/// The same from axes that are prepared already, which may be more than a shape has.
void enqueue_copy(const TaskQueue& queue, std::size_t copy, const CopyAxes& axes, const void* from, void* to,
                  std::int64_t element_bytes);
/// Declares what a copy of these axes reads, where `from` is not null, and writes.
void declare_copy(const TaskQueue& queue, const CopyAxes& axes, const void* from, const void* to,
                  std::int64_t element_bytes);
/// The same as enqueue_copy() where axes may change places: `transpose` and `interleave` are the indices of
/// transpose_program() and interleave_program().
void enqueue_transpose(const TaskQueue& queue, std::size_t copy, std::size_t transpose, std::size_t interleave,
                       const StridedCopy& block);

}  // namespace cermet::cuda
