// Regions of a decode step's queries, keys and values: the product of one token or a few, what makes the row of one,
// and the rotation of its heads with the cache's update.
#pragma once

#include "tests/support/decode_regions.hpp"

namespace cermet {

struct RotatedCase {
  DType w = DType::bf16, product = DType::f32, cache = DType::bf16, q = DType::f32, table = DType::f32,
        index = DType::i32;
  std::string front = {};  ///< norm, add_norm; of int8 and fp8 nothing, quant, norm_quant, add_norm_quant
  std::int64_t k = 2048, q_heads = 6, kv_heads = 2, head = 64, value = 64, rotary = 0;
  std::string style = "neox", layout = "hnd";
  bool bias = false, head_norms = false, token_scales = false;
  std::int64_t rows = 1;
  std::int64_t columns() const { return (q_heads + kv_heads) * head + kv_heads * value; }
};

/// What the product alone is: the operands of rotated_region() begin with its.
inline RegionBuilder::Value add_product(RegionBuilder& b, const RotatedCase& c) {
  RegionBuilder::Value scale, offsets;
  const bool scaled = size_of(c.w) == 1;
  const auto x = front_of(b, {.w = c.w, .k = c.k, .front = c.front, .rows = c.rows}, scale, offsets);
  std::vector<RegionBuilder::Value> operands{x, b.operand({c.w, {c.columns(), c.k}})};
  if (scaled) operands.insert(operands.end(), {scale, b.operand({DType::f32, {c.columns()}})});
  if (c.bias) operands.push_back(b.operand({DType::f32, {c.columns()}}));
  return b.add(scaled ? OpKind::scaled_mm : OpKind::linear, operands, {{"out_dtype", std::string(name_of(c.product))}});
}

inline Region with_constant_weight(RegionBuilder& b, const RegionBuilder::Value& product) {
  b.anchor(product);
  Region region = b.build();
  region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = 2;
  return region;
}

inline Region product_before_rotation(const RotatedCase& c, const Target* target) {
  RegionBuilder b(Rounding::strict, target);
  const auto product = add_product(b, c);
  b.result(product);
  return with_constant_weight(b, product);
}

inline Region rotated_region(const RotatedCase& c, const Target* target, Rounding rounding = Rounding::strict) {
  using Values = std::vector<std::int64_t>;
  RegionBuilder b(rounding, target);
  const auto product = add_product(b, c);
  const std::int64_t q = c.q_heads * c.head, k = c.kv_heads * c.head, v = c.kv_heads * c.value,
                     half = (c.rotary ? c.rotary : c.head) / 2;
  const auto split = b.add(OpKind::split, {product}, {{"axis", std::int64_t{-1}}, {"sizes", Values{q, k, v}}});
  const auto heads = [&](std::int32_t part, std::int64_t count, std::int64_t size) {
    return b.add(OpKind::reshape, {b.result_of(split.node, part)}, {{"shape", Values{0, count, size}}});
  };
  const auto cache = [&](std::int64_t last) {
    const std::int64_t page = 16;
    return b.operand({c.cache, c.layout == "hnd" ? Dims{3, c.kv_heads, page, last} : Dims{3, page, c.kv_heads, last}});
  };
  const auto table = [&] { return b.operand({c.table, {40, half}}); };
  const auto index = [&] { return b.operand({c.index, {c.rows}}); };
  const auto weight = [&] { return c.head_norms ? b.operand({DType::f32, {c.head}}) : RegionBuilder::Value(); };
  const auto scales = [&] {
    return c.token_scales
               ? b.operand({DType::f32, c.layout == "hnd" ? Dims{3, c.kv_heads, 16} : Dims{3, 16, c.kv_heads}})
               : RegionBuilder::Value();
  };
  std::vector<RegionBuilder::Value> operands{heads(0, c.q_heads, c.head), heads(1, c.kv_heads, c.head),
                                             heads(2, c.kv_heads, c.value)};
  operands.insert(operands.end(), {table(), table(), index(), cache(c.head), cache(c.value), index(), weight(),
                                   weight(), scales(), scales()});
  const auto y = b.add(
      OpKind::rope_and_cache, operands,
      {{"style", c.style}, {"rotary_dim", c.rotary}, {"layout", c.layout}, {"out_dtype", std::string(name_of(c.q))}});
  for (std::int32_t result = 0; result < (c.token_scales ? 5 : 3); ++result) b.result(b.result_of(y.node, result));
  return with_constant_weight(b, product);
}

struct NamedRotatedCase {
  std::string name;
  RotatedCase c;
};

inline std::vector<NamedRotatedCase> rotated_cases() {
  using enum DType;
  std::vector<NamedRotatedCase> list;
  const auto add = [&](std::string name, const RotatedCase& c) { list.push_back({std::move(name), c}); };
  add("llama_1b", {.front = "norm", .q_heads = 32, .kv_heads = 8});
  add("llama_8b", {.front = "add_norm", .k = 4096, .q_heads = 32, .kv_heads = 8, .head = 128, .value = 128});
  add("bias", {.q = bf16, .front = "norm", .k = 896, .bias = true});
  for (const DType product : {f32, bf16, f16})
    for (const DType cache : {f32, bf16, f16})
      add(fmt::format("{}_to_{}", name_of(product), name_of(cache)),
          {.product = product, .cache = cache, .q = product, .table = product, .k = 264});
  for (const std::int64_t k : {36, 520, 1000, 5632, 14336, 16384})
    add(fmt::format("k{}", k), {.index = DType::i64, .k = k, .q_heads = 3, .kv_heads = 1});
  add("f32_weight", {.w = f32, .front = "norm"});
  add("i8", {.w = i8, .k = 264});
  add("i8_llama_1b", {.w = i8, .front = "add_norm_quant", .q_heads = 32, .kv_heads = 8});
  add("i8_llama_8b", {.w = i8, .k = 4096, .q_heads = 32, .kv_heads = 8, .head = 128, .value = 128});
  add("i8_norm", {.w = i8,
                  .product = bf16,
                  .q = bf16,
                  .front = "norm_quant",
                  .k = 1000,
                  .head = 80,
                  .value = 48,
                  .rotary = 38,
                  .style = "gptj"});
  add("i8_bias", {.w = i8, .front = "quant", .bias = true});
  add("fp8", {.w = f8_e5m2, .k = 264, .bias = true});
  add("fp8_llama_1b", {.w = f8_e4m3, .front = "add_norm_quant", .q_heads = 32, .kv_heads = 8});
  add("fp8_llama_8b", {.w = f8_e4m3, .k = 4096, .q_heads = 32, .kv_heads = 8, .head = 128, .value = 128});
  add("fp8_norm", {.w = f8_e4m3,
                   .product = bf16,
                   .q = bf16,
                   .front = "norm_quant",
                   .k = 1000,
                   .head = 80,
                   .value = 48,
                   .rotary = 38,
                   .style = "gptj"});
  add("fp8_cache", {.cache = f8_e5m2});
  add("tokens_before_heads", {.layout = "nhd"});
  add("interleaved", {.style = "gptj"});
  add("partial", {.head = 80, .value = 18, .rotary = 38});
  add("partial_interleaved", {.k = 1000, .head = 80, .value = 48, .rotary = 38, .style = "gptj"});
  add("many_heads", {.k = 264, .q_heads = 40, .kv_heads = 20, .head = 10, .value = 6});
  return list;
}

/// Of several tokens, which weights meet as columns of wgmma (sm_90).
inline std::vector<NamedRotatedCase> rotated_rows_cases() {
  using enum DType;
  std::vector<NamedRotatedCase> list;
  const auto add = [&](std::string name, const RotatedCase& c) {
    list.push_back({fmt::format("{}_{}_rows", name, c.rows), c});
  };
  for (const std::int64_t rows : {2, 8, 9, 16, 17, 32})
    add("llama_1b", {.product = bf16, .q = bf16, .q_heads = 32, .kv_heads = 8, .rows = rows});
  add("llama_8b", {.k = 4096, .q_heads = 32, .kv_heads = 8, .head = 128, .value = 128, .rows = 8});
  add("f16", {.w = f16, .product = f16, .cache = f16, .q = f16, .table = f16, .index = i64, .k = 264, .rows = 5});
  add("bias", {.k = 896, .bias = true, .rows = 7});
  add("i8", {.w = i8, .product = bf16, .q = bf16, .k = 272, .bias = true, .rows = 6});
  add("fp8", {.w = f8_e4m3, .rows = 12});
  add("fp8_cache", {.cache = f8_e5m2, .rows = 3});
  add("tokens_before_heads", {.layout = "nhd", .rows = 20});
  add("interleaved", {.k = 520, .style = "gptj", .rows = 8});
  add("partial", {.k = 520, .head = 96, .value = 64, .rotary = 32, .rows = 11});
  add("partial_interleaved", {.k = 520, .head = 80, .value = 48, .rotary = 38, .style = "gptj", .rows = 4});
  add("rounds", {.k = 72, .q_heads = 500, .kv_heads = 130, .rows = 10});
  return list;
}

inline std::vector<NamedRegion> regions_of(const std::vector<NamedRotatedCase>& cases, const Target* target) {
  std::vector<NamedRegion> list;
  for (const auto& [name, c] : cases) list.push_back({"rotated_" + name, rotated_region(c, target)});
  return list;
}
inline std::vector<NamedRegion> rotated_regions(const Target* target) { return regions_of(rotated_cases(), target); }
inline std::vector<NamedRegion> rotated_rows_regions(const Target* target) {
  return regions_of(rotated_rows_cases(), target);
}

}  // namespace cermet
