// The paged KV cache as operators see it: which axis is which, and the check of its operands.
#pragma once

#include "base/tensor.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// Element types that a KV cache may be stored in.
inline constexpr DTypeSet kv_cache_dtypes = dtypes::real | dtypes::fp8 | DTypeSet{DType::i8};

/// Axes of a cache [blocks, heads, block, D] ("hnd") or [blocks, block, heads, D] ("nhd"). Per-token scales have the
/// same axes without the last.
struct KvCacheAxes {
  int heads = 1, block = 2;
  explicit KvCacheAxes(const std::string& layout) : heads(layout == "hnd" ? 1 : 2), block(layout == "hnd" ? 2 : 1) {}
};

/// Whether a cache holds values in columns of 16 tokens (format/value_columns.hpp): 8-bit ones, [blocks, heads, block /
/// 16, Dv, 16].
inline bool in_columns(const TensorType& cache) { return cache.rank() == 5; }

/// Dense index of the first element of row `row` of a block and head, and from one element to the next.
struct CacheRow {
  std::int64_t first, step;
};
CacheRow cache_row(const TensorView& cache, const KvCacheAxes& axes, std::int64_t block, std::int64_t row,
                   std::int64_t head);

/// From one head's scale to the next: 0 where all heads have one.
inline std::int64_t head_scale_step(const TensorView& scales) { return scales.elements() == 1 ? 0 : 1; }

/// The attribute `layout` of operators on a cache.
AttributeSpec kv_cache_layout_attribute();

/// Checks operands k_cache and v_cache (in rows or columns), their block size (1 to 256), and the scales: [heads] or
/// one per cached token, required for int8, absent for unquantized caches. `scale` and `scale + 1` are the operand
/// numbers of k_scale and v_scale. Throws Error naming the operand.
void check_kv_cache(const Problem& problem, std::size_t k_cache, std::size_t scale);

/// Whether the scale operand, if given, holds one scale per cached token rather than one per head.
bool has_token_scales(const Problem& problem, std::size_t scale);

}  // namespace cermet
