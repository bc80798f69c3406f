#include "format/fp8.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::kv_cache_write_op {
namespace {

using enum op::kv_cache_write::Operand;

std::vector<TensorType> infer(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  expect_rank(p, k, 3);
  expect_rank(p, v, 3);
  check_kv_cache(p, k_cache, k_scale);
  expect_dtype(p, v, p.input(k).dtype, "that of k");
  expect_dim(p, v, 0, dim_of(p, k, 0), "tokens of k");
  expect_dim(p, v, 1, dim_of(p, k, 1), "heads of k");
  expect_dim(p, k_cache, axes.heads, dim_of(p, k, 1), "heads of k");
  expect_dim(p, k_cache, 3, dim_of(p, k, 2), "head size of k");
  expect_dim(p, v_cache, 3, dim_of(p, v, 2), "head size of v");
  expect_rank(p, slots, 1);
  expect_dim(p, slots, 0, dim_of(p, k, 0), "tokens of k");
  std::vector<TensorType> outputs{p.input(k_cache), p.input(v_cache)};
  if (has_token_scales(p, k_scale)) outputs.insert(outputs.end(), {p.input(k_scale), p.input(v_scale)});
  return outputs;
}

/// Writes one vector of a token and head, of which `source` is the dense index of its first element.
void write_vector(const TensorView& from, std::int64_t source, const TensorView& cache, const CacheRow& target,
                  float scale, bool scaled) {
  for (std::int64_t d = 0; d < from.shape.back(); ++d) {
    const auto x = static_cast<float>(load(from, source + d));
    const float code = !scaled ? x : scale == 0 ? 0.0f : x / scale;
    store(cache, target.first + d * target.step, code);
  }
}

float dynamic_scale(const TensorView& from, std::int64_t source, DType dtype) {
  const float top = dtype == DType::i8 ? 127.0f : dtype == DType::f8_e4m3 ? format::e4m3_max : format::e5m2_max;
  float largest = 0;
  for (std::int64_t d = 0; d < from.shape.back(); ++d) {
    const float x = std::abs(static_cast<float>(load(from, source + d)));
    if (std::isnan(x)) return x;
    largest = std::max(largest, x);
  }
  return largest / top;
}

void write_tokens(const ReferenceCall& call, std::size_t which) {
  const KvCacheAxes axes(call.attributes.text("layout"));
  const TensorView &from = call.inputs[which], &cache = call.outputs[which], &slot_list = call.inputs[slots];
  const bool scaled = call.has(k_scale), per_token = call.outputs.size() > 2;
  const std::int64_t heads = from.shape[1], block = call.outputs[k].shape[axes.block];
  for (std::int64_t t = 0; t < from.shape[0]; ++t) {
    const std::int64_t slot = load_index(slot_list, t);
    if (slot < 0) continue;
    check_index("kv_cache_write", "slots", slot, cache.shape[0] * block);
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t source = (t * heads + head) * from.shape[2];
      float scale = 1;
      if (per_token) {
        scale = dynamic_scale(from, source, cache.dtype);
        const std::int64_t at =
            axes.heads == 1 ? (slot / block * heads + head) * block + slot % block : slot * heads + head;
        store(call.outputs[2 + which], at, scale);
      } else if (scaled) {
        scale = static_cast<float>(
            load(call.inputs[k_scale + which], head * head_scale_step(call.inputs[k_scale + which])));
      }
      write_vector(from, source, cache, cache_row(cache, axes, slot / block, slot % block, head), scale, scaled);
    }
  }
}

void reference(const ReferenceCall& call) {
  write_tokens(call, k);
  write_tokens(call, v);
}

Case make_case(std::string name, DType from, DType to, Dims dims, std::vector<double> slot_list,
               std::string layout = "hnd", int scales = 0) {
  const auto tokens = static_cast<std::int64_t>(slot_list.size());
  const Dim blocks = dims[0], heads = dims[1], block = dims[2], d = dims[3], dv = dims[4];
  const bool hnd = layout == "hnd";
  const auto cache = [&](const Dim& last) {
    return hnd ? Dims{blocks, heads, block, last} : Dims{blocks, block, heads, last};
  };
  Case c{std::move(name),
         {CaseOperand{{from, {tokens, heads, d}}, normal(), 3}, CaseOperand{{from, {tokens, heads, dv}}, normal(2)},
          CaseOperand{{to, cache(d)}}, CaseOperand{{to, cache(dv)}},
          CaseOperand{{DType::i32, {tokens}}, values(std::move(slot_list))}},
         {{"layout", layout}}};
  const Dims scale_dims = scales == 1 ? Dims{heads} : hnd ? Dims{blocks, heads, block} : Dims{blocks, block, heads};
  if (scales)
    c.inputs.insert(c.inputs.end(), {CaseOperand{{DType::f32, scale_dims}, uniform(0.01, 0.02)},
                                     CaseOperand{{DType::f32, scale_dims}, uniform(0.02, 0.03)}});
  return c;
}

Case in_columns_of(Case c) {
  Dims& dims = c.inputs[v_cache]->type.dims;
  dims = {dims[0], dims[1], dims[2].constant() / 16, dims[3], 16};
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const std::vector<double> order{17, 3, -1, 0, 23, 8, 9};
  for (DType from : {DType::f32, DType::bf16, DType::f16})
    for (DType to : {DType::f32, DType::bf16, DType::f16})
      list.push_back(
          make_case(fmt::format("{}_to_{}", name_of(from), name_of(to)), from, to, {3, 2, 8, 24, 24}, order));
  for (DType to : {DType::i8, DType::f8_e4m3, DType::f8_e5m2}) {
    list.push_back(
        make_case(fmt::format("{}_head_scales", name_of(to)), DType::f32, to, {3, 2, 8, 40, 24}, order, "hnd", 1));
    list.push_back(
        make_case(fmt::format("{}_token_scales", name_of(to)), DType::bf16, to, {3, 3, 8, 40, 17}, order, "hnd", 2));
    list.push_back(
        make_case(fmt::format("{}_token_scales_nhd", name_of(to)), DType::f16, to, {3, 3, 8, 16, 24}, order, "nhd", 2));
  }
  for (DType to : {DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    for (const int scales : {1, 2})
      list.push_back(
          in_columns_of(make_case(fmt::format("{}_columns_{}_scales", name_of(to), scales == 2 ? "token" : "head"),
                                  DType::bf16, to, {3, 2, 32, 40, 24}, {17, 3, -1, 0, 93, 40, 41}, "hnd", scales)));
  for (DType to : {DType::i8, DType::f8_e4m3}) {
    list.push_back(
        make_case(fmt::format("{}_one_scale", name_of(to)), DType::bf16, to, {3, 2, 8, 16, 24}, order, "hnd", 1));
    for (const std::size_t scale : {k_scale, v_scale})
      list.back().inputs[scale]->type.dims = to == DType::i8 ? Dims{} : Dims{1};
  }
  list.push_back(make_case("blocks_of_many", DType::f32, DType::bf16, {2, 2, 700, 8, 8}, {1300, 3, -1, 699}, "nhd"));
  list.push_back(make_case("fp8_no_scales", DType::f32, DType::f8_e4m3, {3, 1, 8, 33, 33}, order));
  list.push_back(make_case("nhd", DType::f32, DType::bf16, {2, 3, 16, 64, 32}, order, "nhd"));
  list.push_back(make_case("repeated_slot", DType::f32, DType::f32, {1, 1, 8, 8, 8}, {2, 2, 5, 2}));
  list.push_back(make_case("no_tokens", DType::f32, DType::f32, {1, 1, 8, 8, 8}, {}));
  list.push_back(make_case("nan_zero_infinite", DType::f32, DType::i8, {1, 1, 8, 4, 2}, {1, 5, 2}, "hnd", 2));
  list.back().inputs[k]->fill = values({1, NAN, 2, 3, 0, 0, 0, 0, INFINITY, 1, 2, -3});
  list.push_back(make_case("saturates", DType::f32, DType::i8, {1, 1, 8, 4, 2}, {1, 5}, "hnd", 1));
  list.back().inputs[k]->fill = values({1e9, -1e9, INFINITY, NAN, 0, 1e-9, -INFINITY, 3e38});
  list.push_back(make_case("zero_scale", DType::f32, DType::i8, {1, 2, 8, 4, 2}, {1, 5}, "hnd", 1));
  list.back().inputs[k_scale]->fill = values({0, 0.5});
  list.push_back(make_case("slots_i64", DType::bf16, DType::bf16, {3, 2, 8, 8, 8}, order));
  list.back().inputs[slots]->type.dtype = DType::i64;
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Attention and cache",
      .summary = "Stores keys and values of new tokens in a paged cache",
      .semantics =
          "Token t goes to slot = slots[t]: block slot / block_size, row slot % block_size. A negative slot skips the "
          "token; a slot past the cache is an "
          "error and nothing is written. Where two tokens name one slot the later one stays. Unquantized caches: one "
          "rounding. int8 and fp8 caches hold "
          "x / scale, rounded half to even and saturated (an int8 NaN is 0, a zero scale gives 0). Scales of rank 1 "
          "are given, one per head; without "
          "scales an fp8 cache holds x itself. Scales of rank 3 are a cache of their own that this operator fills: "
          "scale = absmax / 127 (448 for e4m3, "
          "57344 for e5m2) over the head of the token, NaN where the head has one. v_cache may hold 8-bit values in "
          "columns, as incre_flash_attention reads them. The caches are updated in place.",
      .inputs = {{"k", dtypes::real, "[T, heads, D]", "new keys", Mapping::one_to_one},
                 {"v", dtypes::real, "[T, heads, Dv]", "new values", Mapping::one_to_one},
                 {"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "paged keys; updated", Mapping::barrier},
                 {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "paged values, or in columns; updated",
                  Mapping::barrier},
                 {"slots", dtypes::index, "[T]", "where each token goes", Mapping::barrier},
                 {"k_scale",
                  {DType::f32},
                  "[], [heads] or [blocks, heads, block]",
                  "scales of the keys: given, one or per head, or filled per token",
                  Mapping::barrier,
                  true},
                 {"v_scale",
                  {DType::f32},
                  "[], [heads] or [blocks, heads, block]",
                  "scales of the values",
                  Mapping::barrier,
                  true}},
      .outputs =
          {{"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "the updated operand"},
           {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "the updated operand"},
           {"k_scale", {DType::f32}, "[blocks, heads, block]", "the updated operand, where scales are per token"},
           {"v_scale", {DType::f32}, "[blocks, heads, block]", "the updated operand, where scales are per token"}},
      .attributes = {kv_cache_layout_attribute()},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return static_cast<double>((p.input(k).elements() + p.input(v).elements()).value(p.maximum));
          },
      .bytes =
          [](const Problem& p) {
            const auto written = [&](std::size_t from, std::size_t to) {
              const auto size = static_cast<std::int64_t>(size_of(p.input(from).dtype) + size_of(p.input(to).dtype));
              return static_cast<double>(p.input(from).elements().value(p.maximum) * size);
            };
            return written(k, k_cache) + written(v, v_cache);
          },
      .cases = cases,
      .aliases = {2, 3, 5, 6},
  };
}

}  // namespace cermet::kv_cache_write_op
