// Operands of rope_and_cache behind a product: host and device.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"

namespace cermet::rotation {

/// Beside the product's own. Strides in elements.
struct Places {
  const void *cos, *sin;          ///< [table_rows, pairs of a head that are rotated]
  const void *positions, *slots;  ///< [rows]
  kv_cache::Cache k_cache, v_cache;
  int64_t q_head_stride, cos_stride, sin_stride, table_rows, pages;
};

}  // namespace cermet::rotation
