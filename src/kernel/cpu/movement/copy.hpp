// The one copy behind transpose, slice, concat, split, expand and the collectives: a block of elements between two
// strided layouts.
#pragma once

#include "base/tensor.hpp"
#include "base/thread_pool.hpp"

namespace cermet::cpu {

/// Copies a block of `shape`, element by element, between layouts that may have any strides (in elements; 0 repeats,
/// negative walks backwards). The memories do not overlap. Long runs become memcpy; a transposition goes through tiles
/// that stay in L1.
void strided_copy(const Shape& shape, const void* from, const Shape& from_strides, void* to, const Shape& to_strides,
                  std::size_t element_bytes, ThreadPool& pool);

}  // namespace cermet::cpu
