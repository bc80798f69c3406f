// Host half of tasks that write to a paged cache.
#pragma once

#include <algorithm>

#include "kernel/cuda/device/attention/cache_slots.hpp"
#include "op/kv_cache.hpp"

namespace cermet::cuda {

/// A cache, of which values may be in columns, and its scales (null for none), which are one for each head or one for
/// each cached token.
inline kv_cache::Cache cache_of(const TensorView& cache, const TensorView* scales, const KvCacheAxes& axes) {
  kv_cache::Cache c{cache.data, nullptr, cache.strides[0], cache.strides[axes.block], cache.strides[axes.heads], 0,
                    0,          0};
  if (cache.shape.rank() == 5)  // columns
    c.row_stride = cache.strides[2], c.head_stride = cache.strides[1], c.column_stride = cache.strides[3];
  if (!scales) return c;
  c.scale = scales->as<float>();
  const bool per_token = scales->shape.rank() == 3;
  c.scale_head_stride = per_token ? scales->strides[axes.heads] : head_scale_step(*scales);
  if (per_token) c.scale_page_stride = scales->strides[0], c.scale_row_stride = scales->strides[axes.block];
  return c;
}

/// Of a problem whose k_scale is operand `scale`.
inline kv_cache::Scales scales_of(const Problem& p, std::size_t scale) {
  if (!p.has(scale)) return kv_cache::Scales::none;
  return has_token_scales(p, scale) ? kv_cache::Scales::token : kv_cache::Scales::head;
}

/// Whether rows of the last dimension start at multiples of four elements.
inline bool quads_aligned(const TensorView& view) {
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % (4 * size_of(view.dtype)) == 0;
  for (int axis = 0; axis + 1 < view.shape.rank(); ++axis) aligned &= view.strides[axis] % 4 == 0;
  return aligned;
}

/// Whether vectors of this many elements, or pieces of 16 bytes of them, may be accessed in all rows of the last
/// dimension.
inline bool vectors_aligned(const TensorView& view, std::int64_t elements) {
  const auto size = byte_size(view.dtype), step = std::min<std::int64_t>(16, elements * size);
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(step) == 0;
  for (int axis = 0; axis + 1 < view.shape.rank(); ++axis) aligned &= view.strides[axis] * size % step == 0;
  return aligned;
}

}  // namespace cermet::cuda
