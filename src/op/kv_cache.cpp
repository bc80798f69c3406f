#include "op/kv_cache.hpp"

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

void check_scale(const Problem& p, std::size_t cache, std::size_t scale, const KvCacheAxes& axes) {
  const DType dtype = p.input(cache).dtype;
  if (!p.has(scale)) {
    if (dtype == DType::i8) bad_operand(p, scale, "scales, because the cache is int8", "nothing");
    return;
  }
  if (dtypes::real.contains(dtype))
    bad_operand(p, scale, fmt::format("nothing, because the cache is {}", name_of(dtype)), p.input(scale).to_string());
  const Dims& dims = p.input(cache).dims;
  if (p.input(scale).rank() == 1)
    expect_dim(p, scale, 0, dims[static_cast<std::size_t>(axes.heads)], "the cache's heads");
  else
    expect_dims(p, scale, {dims[0], dims[1], dims[2]},
                fmt::format("those of {} without the last", p.input_name(cache)));
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
  expect_rank(p, v_cache, 4);
  for (int axis = 0; axis < 3; ++axis) expect_dim(p, v_cache, axis, dim_of(p, k_cache, axis), "that of k_cache");
  expect_dtype(p, v_cache, p.input(k_cache).dtype, "that of k_cache");
  const Dim block = dim_of(p, k_cache, axes.block);
  if (!block.is_constant() || block.constant() < 1 || block.constant() > 256)
    bad_operand(p, k_cache, "a block size of 1 to 256",
                fmt::format("{} in {}", block.to_string(), p.input(k_cache).to_string()));
  check_scale(p, k_cache, scale, axes);
  check_scale(p, v_cache, scale + 1, axes);
  if (p.has(scale) != p.has(scale + 1) || has_token_scales(p, scale) != has_token_scales(p, scale + 1))
    bad_operand(p, scale + 1, "scales of the same kind as k_scale",
                p.has(scale + 1) ? p.input(scale + 1).to_string() : "nothing");
}

}  // namespace cermet
