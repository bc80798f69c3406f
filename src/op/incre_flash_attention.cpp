#include "op/attention.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::incre_flash_attention_op {
namespace {

using enum op::incre_flash_attention::Operand;
constexpr std::string_view name = "incre_flash_attention";

std::vector<TensorType> infer(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  check_kv_cache(p, k_cache, k_scale);
  expect_rank(p, block_tables, 2);
  expect_rank(p, context_lens, 1);
  const Dim sequences = dim_of(p, block_tables, 0);
  expect_dim(p, context_lens, 0, sequences, "sequences of block_tables");
  auto outputs =
      infer_attention(p, dim_of(p, k_cache, axes.heads), dim_of(p, k_cache, 3), dim_of(p, v_cache, 3), sinks, alibi);
  if (p.has(query_starts)) expect_dims(p, query_starts, {sequences + 1}, "sequences of block_tables, and one");
  else expect_dim(p, q, 0, sequences, "sequences of block_tables, because query_starts is not given");
  return outputs;
}

/// Dense index of a token's vector, without its elements, in a cache or a scale cache.
std::int64_t cache_row(const TensorView& cache, const KvCacheAxes& axes, std::int64_t block, std::int64_t offset,
                       std::int64_t head) {
  const std::int64_t heads = cache.shape[axes.heads], size = cache.shape[axes.block];
  return axes.heads == 1 ? (block * heads + head) * size + offset : (block * size + offset) * heads + head;
}

/// Element d of a cached token, dequantized in float32.
double cached(const ReferenceCall& call, std::size_t which, const KvCacheAxes& axes, std::int64_t sequence,
              std::int64_t head, std::int64_t token, std::int64_t d) {
  const TensorView &cache = call.inputs[which], &tables = call.inputs[block_tables];
  const std::int64_t size = cache.shape[axes.block];
  const std::int64_t block = load_index(tables, sequence * tables.shape[1] + token / size);
  check_index(name, "block_tables", block, cache.shape[0]);
  const std::int64_t row = cache_row(cache, axes, block, token % size, head);
  const double element = load(cache, row * cache.shape[3] + d);
  const std::size_t scale = which - k_cache + k_scale;
  if (!call.has(scale)) return element;
  return element * load(call.inputs[scale], call.inputs[scale].shape.rank() == 1 ? head : row);
}

struct Span {
  std::int64_t begin, end, context;
};

/// Queries and context of a sequence; throws where they do not fit each other.
Span span_of(const ReferenceCall& call, std::int64_t b, std::int64_t capacity) {
  const std::int64_t context = load_index(call.inputs[context_lens], b);
  require(context >= 0 && context <= capacity,
          "{}: operand context_lens: expected 0 to {} tokens, found {} for sequence {}", name, capacity, context, b);
  if (!call.has(query_starts)) return {b, b + 1, context};
  const std::int64_t begin = load_index(call.inputs[query_starts], b),
                     end = load_index(call.inputs[query_starts], b + 1);
  const std::int64_t sequences = call.inputs[context_lens].shape[0], tokens = call.inputs[q].shape[0];
  const bool fits = begin <= end && (b > 0 || begin == 0) && (b + 1 < sequences || end == tokens) && end <= tokens;
  require(fits, "{}: operand query_starts: expected values that rise from 0 to {}, found {} to {} for sequence {}",
          name, tokens, begin, end, b);
  require(context == 0 || end - begin <= context,
          "{}: operand context_lens: expected at least the {} queries of sequence {}, found {}", name, end - begin, b,
          context);
  return {begin, end, context};
}

void reference(const ReferenceCall& call) {
  const KvCacheAxes axes(call.attributes.text("layout"));
  const TensorView &queries = call.inputs[q], &tables = call.inputs[block_tables], &cache = call.inputs[k_cache];
  const std::int64_t heads = queries.shape[1], head_size = queries.shape[2], value_size = call.outputs[0].shape[2];
  const std::int64_t group = heads / cache.shape[axes.heads];
  const AttentionSettings settings(call.attributes, head_size);
  for (std::int64_t b = 0; b < tables.shape[0]; ++b) {
    const Span span = span_of(call, b, tables.shape[1] * cache.shape[axes.block]);
    for (std::int64_t t = span.begin; t < span.end; ++t)
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto element = [&, head](std::size_t which) {
          return [&, which, head](std::int64_t j, std::int64_t d) {
            return cached(call, which, axes, b, head / group, j, d);
          };
        };
        const ReferenceKeys keys{span.context, span.context - span.end + t, element(k_cache), element(v_cache)};
        const std::int64_t row = t * heads + head;
        reference_attention(call, settings, {row * head_size, row * value_size, head * queries.shape[0] + t, head},
                            keys, sinks, alibi);
      }
  }
}

struct Sizes {
  std::int64_t heads = 4, kv_heads = 2, d = 16, dv = 16, block = 8;
  DType q = DType::f32, cache = DType::f32;
  bool aligned = false;  ///< rows of q and keys are multiples of 16 bytes apart, as tiled kernels need them
};

/// Sequences with these contexts, one query each or as many as `queries` says; every table names other blocks, the
/// unused entries are -1.
Case make_case(std::string case_name, const Sizes& s, const std::vector<std::int64_t>& contexts,
               const std::vector<std::int64_t>& queries = {}, Attributes attributes = {}) {
  const auto sequences = static_cast<std::int64_t>(contexts.size());
  std::int64_t pages = 1, blocks = 0;
  for (const std::int64_t context : contexts) pages = std::max(pages, (context + s.block - 1) / s.block);
  std::vector<double> tables, lens(contexts.begin(), contexts.end()), starts{0};
  for (const std::int64_t context : contexts)
    for (std::int64_t page = 0; page < pages; ++page)
      tables.push_back(page * s.block < context ? static_cast<double>(blocks++) : -1);
  for (double& block : tables)
    if (block >= 0) block = static_cast<double>(blocks) - 1 - block;  // not in the order of the tokens
  for (const std::int64_t count : queries) starts.push_back(starts.back() + static_cast<double>(count));
  const auto tokens = queries.empty() ? sequences : static_cast<std::int64_t>(starts.back());
  const AttributeValue* layout = attributes.find("layout");
  const bool hnd = !layout || std::get<std::string>(*layout) == "hnd";
  const auto cache = [&](std::int64_t last) {
    return hnd ? Dims{blocks, s.kv_heads, s.block, last} : Dims{blocks, s.block, s.kv_heads, last};
  };
  Case c{std::move(case_name), {}, std::move(attributes)};
  c.inputs = {CaseOperand{{s.q, {tokens, s.heads, s.d}}, normal(), s.aligned ? 8 : 3},
              CaseOperand{{s.cache, cache(s.d)}, normal(), s.aligned ? 16 / byte_size(s.cache) : 2},
              CaseOperand{{s.cache, cache(s.dv)}},
              CaseOperand{{DType::i32, {sequences, pages}}, values(std::move(tables)), 1},
              CaseOperand{{DType::i32, {sequences}}, values(std::move(lens))}};
  if (!queries.empty()) c.inputs.push_back(CaseOperand{{DType::i32, {sequences + 1}}, values(std::move(starts))});
  c.inputs.resize(alibi + 1);
  return c;
}

/// Scales of a head or of a token for a quantized cache.
void add_scales(Case& c, bool per_token) {
  const DType cache = c.inputs[k_cache]->type.dtype;
  const Dims& dims = c.inputs[k_cache]->type.dims;
  const KvCacheAxes axes(c.attributes.find("layout") ? std::get<std::string>(*c.attributes.find("layout")) : "hnd");
  for (const std::size_t cached : {k_cache, v_cache}) {
    if (cache == DType::i8) c.inputs[cached]->fill = integers(-128, 127);
    c.inputs[cached - k_cache + k_scale] = CaseOperand{
        {DType::f32, per_token ? Dims{dims[0], dims[1], dims[2]} : Dims{dims[static_cast<std::size_t>(axes.heads)]}},
        cache == DType::i8 ? uniform(0.005, 0.01) : uniform(0.5, 1)};
  }
}

/// Head sizes beyond 192, values that are narrower than keys, and pages of one token.
void add_wide_tiles(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  for (const DType t : {DType::bf16, DType::f16}) {
    Sizes s{.heads = 4, .kv_heads = 2, .block = 16, .q = t, .cache = t, .aligned = true};
    const auto add = [&](std::string_view case_name, std::int64_t d, std::int64_t dv, const Lengths& contexts,
                         const Lengths& queries, Attributes attributes = {}) {
      s.d = d, s.dv = dv;
      list.push_back(
          make_case(fmt::format("tiles_{}_{}", case_name, name_of(t)), s, contexts, queries, std::move(attributes)));
    };
    add("prefill_256", 256, 256, {90, 0, 30}, {80, 1, 20}, {{"return_lse", true}, {"window", std::int64_t{50}}});
    add("decode_256", 256, 256, {90, 30}, {1, 3});
    add("prefill_192", 192, 128, {50, 30}, {40, 20});
    add("prefill_odd_wide", 232, 248, {50}, {40});
    add("prefill_512", 512, 512, {70, 20}, {40, 20}, {{"return_lse", true}});
    s.kv_heads = 1;
    add("prefill_mla", 576, 512, {40, 9}, {12, 9}, {{"layout", "nhd"}});
    list.back().inputs[sinks] = CaseOperand{{DType::f32, {s.heads}}, normal(2)};
    s.block = 1;
    add("prefill_tokens", 64, 64, {70, 20}, {40, 20});
    add("decode_tokens", 128, 128, {70, 20}, {1, 1});
    if (t == DType::bf16) s.q = DType::f32;
    add("prefill_512_mixed", 512, 512, {40}, {20}, {{"softcap", 4.0}});
  }
}

/// Quantized caches with rows that tiled kernels take.
void add_quantized_tiles(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  struct Shape {
    std::string_view name;
    DType q;
    std::int64_t kv_heads, d, dv, block;
    bool biased;
  };
  const std::vector<Shape> shapes{
      Shape{"prefill", DType::bf16, 2, 64, 64, 16, false}, Shape{"prefill_f16", DType::f16, 2, 128, 112, 20, false},
      Shape{"prefill_f32", DType::f32, 1, 80, 80, 1, true}, Shape{"prefill_256", DType::bf16, 2, 256, 256, 16, false},
      Shape{"prefill_mla", DType::f16, 1, 576, 512, 16, true}};
  for (const DType cache : {DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    for (const bool per_token : {false, true})
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (cache != DType::i8 && (i % 2 == 0) != per_token) continue;  // one kind of scales each
        if (cache == DType::f8_e5m2 && i > 1) continue;
        const Shape& shape = shapes[i];
        const Sizes s{.heads = 4,
                      .kv_heads = shape.kv_heads,
                      .d = shape.d,
                      .dv = shape.dv,
                      .block = shape.block,
                      .q = shape.q,
                      .cache = cache,
                      .aligned = true};
        const bool wide = shape.d > 128;
        Case c = make_case(
            fmt::format("tiles_{}_{}_{}", shape.name, name_of(cache), per_token ? "token" : "head"), s,
            wide ? Lengths{40, 9} : Lengths{90, 0, 30}, wide ? Lengths{20, 9} : Lengths{70, 2, 20},
            {{"return_lse", true}, {"softcap", shape.biased ? 4.0 : 0.0}, {"layout", shape.biased ? "nhd" : "hnd"}});
        add_scales(c, per_token);
        if (shape.biased) c.inputs[alibi] = CaseOperand{{DType::f32, {s.heads}}, uniform(0.01, 0.5)};
        if (cache != DType::i8 && !wide) {  // a value that not every query may see
          std::vector<double> fill(static_cast<std::size_t>(shape.dv * 60), 1.5);
          fill[static_cast<std::size_t>(shape.dv * 40 + 5)] = NAN;
          c.inputs[v_cache]->fill = values(std::move(fill));
        }
        list.push_back(std::move(c));
      }
}

/// 16-bit caches with head sizes that tiled kernels take: one query each, a few, and many.
void add_tiles(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  for (const DType t : {DType::bf16, DType::f16}) {
    Sizes s{.heads = 8, .kv_heads = 2, .d = 64, .dv = 64, .block = 16, .q = t, .cache = t, .aligned = true};
    const auto add = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries = {},
                         Attributes attributes = {}) {
      list.push_back(
          make_case(fmt::format("tiles_{}_{}", case_name, name_of(t)), s, contexts, queries, std::move(attributes)));
    };
    const auto add_bias = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries) {
      add(case_name, contexts, queries, {{"softcap", 4.0}, {"return_lse", true}});
      list.back().inputs[sinks] = CaseOperand{{DType::f32, {s.heads}}, normal(2)};
      list.back().inputs[alibi] = CaseOperand{{DType::f32, {s.heads}}, uniform(0.01, 0.5)};
    };
    const auto spoil = [&](std::int64_t row) {  // a value that not every query may see
      const std::int64_t elements = s.kv_heads * s.block * s.dv * list.back().inputs[v_cache]->type.dims[0].constant();
      std::vector<double> fill(static_cast<std::size_t>(elements), 1.5);
      fill[static_cast<std::size_t>(row * s.dv + 5)] = NAN;
      fill[static_cast<std::size_t>(row * s.dv + s.dv + 6)] = INFINITY;
      list.back().inputs[v_cache]->fill = values(std::move(fill));
    };
    add("lse", {50, 0, 7, 300}, {}, {{"return_lse", true}});
    add("window", {50, 9, 300}, {}, {{"window", std::int64_t{20}}});
    add_bias("bias", {50, 300}, {});
    add("chunk", {40, 13}, {3, 1});
    add("chunk_all", {40, 13}, {3, 1}, {{"causal", false}});
    add("chunk_nan", {40}, {3});
    spoil(s.block * s.kv_heads + 5);
    add("batch", {30, 500, 1, 90, 17, 64, 200, 33, 12, 70, 65, 128, 5, 5, 300, 31, 16, 8});
    add("long", {1500});
    add("prefill", {40, 130, 5}, {40, 70, 0}, {{"return_lse", true}});
    add("padding", {40, 13, 0, 0}, {1, 3, 1, 5}, {{"return_lse", true}});
    add("prefill_padding", {40, 130, 0}, {40, 2, 90}, {{"return_lse", true}});
    add("prefill_all", {70, 20}, {70, 20}, {{"causal", false}});
    add_bias("prefill_bias", {40, 130}, {40, 70});
    add("prefill_nan", {50}, {50});
    spoil(s.block * s.kv_heads + 5);
    s.block = 20;
    add("prefill_window_nhd", {40, 130}, {9, 70}, {{"window", std::int64_t{30}}, {"layout", "nhd"}});
    add("window_nhd", {40, 130}, {}, {{"window", std::int64_t{30}}, {"layout", "nhd"}});
    s.block = 16;
    s.d = s.dv = 128;
    add("prefill_wide", {90, 30}, {80, 20});
    add("decode_wide", {190, 30}, {2, 1});
    if (t == DType::bf16) s.q = DType::f32;
    add("prefill_mixed", {90, 30}, {80, 20});
    add("decode_mixed", {190, 30}, {2, 1});
    if (t == DType::bf16) s.q = DType::f16;
    add("decode_other", {190, 30});
    s.d = 72, s.dv = 40, s.q = t, s.heads = 6;
    add("prefill_odd", {90, 30}, {80, 20});
    add("decode_odd", {90, 30});
    s.heads = 32;
    add("decode_group", {90, 30});
  }
}

void add_variants(std::vector<Case>& list) {
  const std::vector<std::int64_t> contexts{13, 40}, queries{5, 3};
  for (const bool causal : {true, false})
    list.push_back(make_case(causal ? "chunk_causal" : "chunk_all", {}, contexts, queries, {{"causal", causal}}));
  list.push_back(make_case("window", {}, {50, 9, 70}, {20, 9, 1}, {{"window", std::int64_t{7}}}));
  list.push_back(make_case("window_all", {}, {50, 9}, {20, 2}, {{"window", std::int64_t{12}}, {"causal", false}}));
  list.push_back(make_case("window_decode", {}, {50, 9, 7, 100}, {}, {{"window", std::int64_t{8}}}));
  list.push_back(make_case("softcap", {}, contexts, queries, {{"softcap", 2.5}}));
  list.push_back(make_case("scale_lse", {}, contexts, queries, {{"scale", 0.7}, {"return_lse", true}}));
  list.push_back(make_case("sinks", {}, {13, 0, 40}, {}, {{"return_lse", true}}));
  list.back().inputs[sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
  list.push_back(make_case("alibi", {}, contexts, queries));
  list.back().inputs[alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
  list.push_back(make_case("nhd", {}, contexts, queries, {{"layout", "nhd"}}));
  list.push_back(make_case("out_dtype", {}, contexts, {}, {{"out_dtype", "bf16"}}));
  list.push_back(make_case("no_context", {}, {0, 5, 0}, {2, 1, 0}, {{"return_lse", true}}));
  list.push_back(make_case("no_tokens", {}, {5, 5}, {0, 0}));
  list.push_back(make_case("nan_query", {}, contexts, {}));
  list.back().inputs[q]->fill = values({1, 2, 3, NAN, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  list.push_back(make_case("future_nan", {}, {24}, {24}));
  list.back().inputs[v_cache]->fill = values(std::vector<double>(16 * 19, 1.5));
  list.back().inputs[v_cache]->fill.values.back() = NAN;
  list.push_back(make_case("infinite_score", {}, contexts, {}));
  list.back().inputs[k_cache]->fill =
      values({1, 2, 3, INFINITY, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
}

std::vector<Case> cases() {
  std::vector<Case> list;
  add_tiles(list);
  add_wide_tiles(list);
  add_quantized_tiles(list);
  // Enough rows for every SM of a large GPU to have several tiles.
  list.push_back(make_case("tiles_blocks",
                           {.heads = 32,
                            .kv_heads = 32,
                            .d = 128,
                            .dv = 128,
                            .block = 16,
                            .q = DType::bf16,
                            .cache = DType::bf16,
                            .aligned = true},
                           {540}, {540}, {{"window", std::int64_t{40}}}));
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (DType cache : {DType::f32, DType::bf16, DType::f16})
      list.push_back(
          make_case(fmt::format("{}_cache_{}", name_of(t), name_of(cache)), {.q = t, .cache = cache}, {1, 17, 40, 8}));
  for (DType cache : {DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    for (const bool per_token : {false, true}) {
      Case c = make_case(fmt::format("{}_{}_scales", name_of(cache), per_token ? "token" : "head"),
                         {.q = DType::bf16, .cache = cache}, {19, 33}, {3, 9});
      add_scales(c, per_token);
      list.push_back(std::move(c));
    }
  for (std::int64_t d : {1, 8, 24, 40, 80, 128, 256})
    list.push_back(make_case(fmt::format("d{}", d),
                             {.heads = 3, .kv_heads = 1, .d = d, .dv = d > 8 ? d - 8 : d, .cache = DType::bf16},
                             {21, 9}, {1, 5}));
  for (std::int64_t block : {16, 20, 256})
    list.push_back(make_case(fmt::format("block{}", block), {.block = block}, {45, 16, 300}, {3, 16, 2}));
  list.push_back(make_case(
      "d8_block16", {.heads = 8, .kv_heads = 2, .d = 8, .dv = 8, .block = 16, .cache = DType::bf16}, {45, 16, 9, 300}));
  list.push_back(make_case("one_head_each", {.heads = 3, .kv_heads = 3}, {33, 12}, {9, 12}));
  list.push_back(make_case("wide_group", {.heads = 20, .kv_heads = 1}, {33, 12}, {9, 12}));
  list.push_back(make_case("many_queries", {.heads = 2, .kv_heads = 1, .d = 8, .dv = 8}, {180}, {150}));
  list.push_back(make_case("long_context", {.heads = 2, .kv_heads = 1, .d = 8, .dv = 8, .block = 64}, {1900, 3}, {},
                           {{"return_lse", true}}));
  add_variants(list);
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Attention and cache",
      .summary = "Attention over a paged cache: decoding and prefill in chunks",
      .semantics =
          "The queries query_starts[b] .. query_starts[b + 1] of q are the last tokens of sequence b, whose "
          "context_lens[b] tokens (these included) are in the "
          "cache; "
          "without query_starts every sequence has one query. Token j of sequence b lies in block block_tables[b, j / "
          "block_size], row j % block_size. Query "
          "head h reads "
          "key-value head h / (Hq / heads). The query at position i sees the keys j < context_lens[b], with causal "
          "only j <= i, with a window only |i - j| < "
          "window. "
          "score = scale * (q . k), then softcap * tanh(score / softcap), then - alibi[h] * |i - j|; o = sum_j "
          "exp(score_j) v_j / (sum_j exp(score_j) + "
          "exp(sinks[h])), float32 "
          "throughout with one rounding at the end; lse[h, t] is the natural logarithm of the denominator, sink "
          "included. Values of an int8 or fp8 cache are "
          "multiplied "
          "by the scale of their head or token. Entries of the cache and of the table past a context are never read. A "
          "query that sees no key gives o = 0 (and "
          "lse = -inf, or "
          "the sink); a context of 0 marks a sequence of padding, whose queries see nothing. Keys that a query does "
          "not see never reach it, not even as NaN.",
      .inputs =
          {{"q", dtypes::real, "[T, Hq, D]", "queries", Mapping::many_to_many},
           {"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "paged keys", Mapping::many_to_many},
           {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "paged values", Mapping::many_to_many},
           {"block_tables", {DType::i32}, "[B, P]", "blocks of each sequence", Mapping::barrier},
           {"context_lens", {DType::i32}, "[B]", "tokens of each sequence, 0 to P * block", Mapping::barrier},
           {"query_starts",
            {DType::i32},
            "[B + 1]",
            "where the queries of each sequence begin; from 0 to T",
            Mapping::barrier,
            true},
           {"k_scale",
            {DType::f32},
            "[heads] or [blocks, heads, block]",
            "scales of an int8 or fp8 cache, per head or per token",
            Mapping::one_to_many,
            true},
           {"v_scale",
            {DType::f32},
            "[heads] or [blocks, heads, block]",
            "scales of the values",
            Mapping::one_to_many,
            true},
           {"sinks",
            {DType::f32},
            "[Hq]",
            "a score per head that takes part in the denominator only",
            Mapping::one_to_many,
            true},
           {"alibi", {DType::f32}, "[Hq]", "slopes of a penalty that grows with distance", Mapping::one_to_many, true}},
      .outputs = {{"o", dtypes::real, "[T, Hq, Dv]", "attention"},
                  {"lse", {DType::f32}, "[Hq, T]", "with return_lse: log of the denominators"}},
      .attributes =
          [] {
            auto attributes = attention_attributes();
            attributes.push_back(kv_cache_layout_attribute());
            return attributes;
          }(),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            const KvCacheAxes axes(p.attributes.text("layout"));
            const double context = static_cast<double>(p.size(block_tables, 1) * p.size(k_cache, axes.block));
            return 2.0 * static_cast<double>(p.size(q, 0) * p.size(q, 1)) * context *
                   static_cast<double>(p.size(k_cache, 3) + p.size(v_cache, 3));
          },
      .bytes =
          [](const Problem& p) {
            const KvCacheAxes axes(p.attributes.text("layout"));
            const std::int64_t tokens = p.size(block_tables, 0) * p.size(block_tables, 1) * p.size(k_cache, axes.block);
            const std::int64_t vectors = p.size(k_cache, axes.heads) * (p.size(k_cache, 3) + p.size(v_cache, 3));
            const auto queries = (p.input(q).bytes().value(p.maximum)) + p.outputs[0].bytes().value(p.maximum);
            return static_cast<double>(tokens * vectors * byte_size(p.input(k_cache).dtype) + queries);
          },
      .rounding_depth =
          [](const Problem& p) {
            const KvCacheAxes axes(p.attributes.text("layout"));
            return attention_rounding_depth(p.size(q, 2), p.size(block_tables, 1) * p.size(k_cache, axes.block));
          },
      .cases = cases,
  };
}

}  // namespace cermet::incre_flash_attention_op
