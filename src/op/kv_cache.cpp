#include "op/kv_cache.hpp"

#include "format/value_columns.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::int64_t largest_block = 65536;

void check_scale(const Problem& p, std::size_t k_cache, std::size_t scale, const KvCacheAxes& axes) {
  const DType dtype = p.input(k_cache).dtype;
  if (!p.has(scale)) {
    if (dtype == DType::i8) bad_operand(p, scale, "scales, because the cache is int8", "nothing");
    return;
  }
  if (dtypes::real.contains(dtype))
    bad_operand(p, scale, fmt::format("nothing, because the cache is {}", name_of(dtype)), p.input(scale).to_string());
  const Dims& dims = p.input(k_cache).dims;
  const int rank = p.input(scale).rank();
  if (rank == 0 || (rank == 1 && p.input(scale).dims[0] == Dim(1))) return;  // one for all heads
  if (rank == 1) expect_dim(p, scale, 0, dims[static_cast<std::size_t>(axes.heads)], "the cache's heads");
  else expect_dims(p, scale, {dims[0], dims[1], dims[2]}, "those of k_cache without the last");
}

/// Values in columns, of which `block` tokens of 8 bits make whole ones.
void check_columns(const Problem& p, std::size_t v_cache, const KvCacheAxes& axes, const Dim& block) {
  constexpr int column = format::value_column;
  const TensorType& cache = p.input(v_cache);
  if (byte_size(cache.dtype) != 1 || axes.heads != 1)
    bad_operand(p, v_cache, "rank 4, because only 8-bit caches of layout hnd have values in columns",
                cache.to_string());
  if (block.constant() % column != 0)
    bad_operand(p, v_cache,
                fmt::format("rank 4, because blocks of {} are no whole columns of {}", block.constant(), column),
                cache.to_string());
  expect_dim(p, v_cache, 2, block.constant() / column, "columns of a block of k_cache");
  expect_dim(p, v_cache, 4, column, "tokens of a column");
}

}  // namespace

AttributeSpec kv_cache_layout_attribute() {
  return {"layout",
          std::string("hnd"),
          "hnd: caches are [blocks, heads, block, D]; nhd: [blocks, block, heads, D]",
          {"hnd", "nhd"}};
}

bool has_token_scales(const Problem& problem, std::size_t scale) {
  return problem.has(scale) && problem.input(scale).rank() == 3;
}

void check_kv_cache(const Problem& p, std::size_t k_cache, std::size_t scale) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  const std::size_t v_cache = k_cache + 1;
  expect_rank(p, k_cache, 4);
  const bool columns = in_columns(p.input(v_cache));
  if (!columns) expect_rank(p, v_cache, 4);
  for (int axis = 0; axis < (columns ? 2 : 3); ++axis)
    expect_dim(p, v_cache, axis, dim_of(p, k_cache, axis), "that of k_cache");
  expect_dtype(p, v_cache, p.input(k_cache).dtype, "that of k_cache");
  const Dim block = dim_of(p, k_cache, axes.block);
  if (!block.is_constant() || block.constant() < 1 || block.constant() > largest_block)
    bad_operand(p, k_cache, fmt::format("a block size of 1 to {}", largest_block),
                fmt::format("{} in {}", block.to_string(), p.input(k_cache).to_string()));
  if (columns) check_columns(p, v_cache, axes, block);
  check_scale(p, k_cache, scale, axes);
  check_scale(p, k_cache, scale + 1, axes);
  if (p.has(scale) != p.has(scale + 1) || has_token_scales(p, scale) != has_token_scales(p, scale + 1))
    bad_operand(p, scale + 1, "scales of the same kind as k_scale",
                p.has(scale + 1) ? p.input(scale + 1).to_string() : "nothing");
}

CacheRow cache_row(const TensorView& cache, const KvCacheAxes& axes, std::int64_t block, std::int64_t row,
                   std::int64_t head) {
  const std::int64_t size = cache.shape[3];
  if (cache.shape.rank() == 5) {
    constexpr int column = format::value_column;
    const std::int64_t at = (block * cache.shape[1] + head) * cache.shape[2] + row / column;
    return {at * size * column + format::value_place(static_cast<int>(row % column)), column};
  }
  const std::int64_t heads = cache.shape[axes.heads], rows = cache.shape[axes.block];
  return {(axes.heads == 1 ? (block * heads + head) * rows + row : (block * rows + row) * heads + head) * size, 1};
}

}  // namespace cermet
