// Cases of incre_flash_attention: tiles, head sizes, caches and pages of each kind, and what a query may not see.
#include "op/incre_flash_attention_cases.hpp"

#include "op/kv_cache.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"

namespace cermet::incre_flash_attention_op {

using enum op::incre_flash_attention::Operand;

Case make_case(std::string case_name, const Sizes& s, const std::vector<std::int64_t>& contexts,
               const std::vector<std::int64_t>& queries, Attributes attributes) {
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
  const auto whole = [](DType dtype) { return byte_size(dtype) == 1 ? 16 : 8; };
  const Dims columns{blocks, s.kv_heads, s.block / 16, s.dv, 16};
  c.inputs = {CaseOperand{{s.q, {tokens, s.heads, s.d}}, normal(), s.aligned ? whole(s.q) : 3},
              CaseOperand{{s.cache, cache(s.d)},
                          normal(),
                          s.whole_pages ? 0
                          : s.aligned   ? whole(s.cache)
                                        : 2},
              CaseOperand{{s.cache, s.columns ? columns : cache(s.dv)}},
              CaseOperand{{DType::i32, {sequences, pages}}, values(std::move(tables)), 1},
              CaseOperand{{DType::i32, {sequences}}, values(std::move(lens))}};
  if (!queries.empty()) c.inputs.push_back(CaseOperand{{DType::i32, {sequences + 1}}, values(std::move(starts))});
  c.inputs.resize(alibi + 1);
  return c;
}

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

namespace {

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
    add("prefill_mla_long", 576, 512, {260, 130, 0, 70}, {20, 17, 0, 1}, {{"return_lse", true}});
    s.block = 24;
    add("prefill_320_window", 320, 384, {200, 90}, {40, 20}, {{"window", std::int64_t{50}}, {"softcap", 4.0}});
    s.block = 16;
    s.block = 1;
    add("prefill_tokens", 64, 64, {70, 20}, {40, 20});
    add("decode_tokens", 128, 128, {70, 20}, {1, 1});
    if (t == DType::bf16) s.q = DType::f32;
    add("prefill_512_mixed", 512, 512, {40}, {20}, {{"softcap", 4.0}});
  }
}

/// Quantized caches with rows that tiled kernels take.
void add_quantized_prefill_tiles(std::vector<Case>& list) {
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
    add("prefill_uneven_window", {90, 20}, {70, 20},
        {{"causal", false}, {"window_left", std::int64_t{37}}, {"window_right", std::int64_t{9}}});
    add("decode_left", {50, 9, 300}, {}, {{"window_left", std::int64_t{19}}});
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

/// Values of 8 bits in columns, read by queries of 8 bits and others.
void add_columns(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  constexpr auto e4m3 = DType::f8_e4m3;
  Sizes s{.heads = 4, .kv_heads = 2, .d = 128, .dv = 128, .block = 16, .q = e4m3, .cache = e4m3};
  s.aligned = s.columns = true;
  const auto add = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries,
                       Attributes attributes = {}) -> Case& {
    return list.emplace_back(
        make_case(fmt::format("columns_{}", case_name), s, contexts, queries, std::move(attributes)));
  };
  add("prefill", {300, 9, 0, 150}, {70, 9, 2, 20}, {{"return_lse", true}});
  add_scales(add("head_scales", {150, 9}, {30, 9}, {{"out_dtype", "f32"}}), false);
  add_scales(add("token_scales", {150, 9}, {30, 9}, {{"return_lse", true}}), true);
  add("window", {400}, {60}, {{"window", std::int64_t{150}}, {"out_dtype", "f16"}});
  std::vector<double>& pages = list.back().inputs[block_tables]->fill.values;
  std::fill(pages.begin(), pages.begin() + (400 - 60 - 149) / s.block, -1);
  add("all", {290, 20}, {40, 20}, {{"causal", false}});
  add("decode", {290, 20, 0}, {});
  add("strict", {90}, {40}, {{"strict", true}});
  std::vector<double> fill;
  for (const bool jumps : {false, true}) {  // scores of later keys, which lie in earlier blocks, are larger
    fill.clear();
    for (int i = 0; i < 44 * 2 * 16 * 128; ++i) {
      const int page = 43 - i / (2 * 16 * 128);
      fill.push_back(std::sin(0.37 * i) * (jumps ? page < 20 ? 0.25 : 100 : 1 + page / 8.0));
    }
    add(jumps ? "jumps" : "grows", {700}, {30}, {{"return_lse", true}}).inputs[k_cache]->fill = values(fill);
  }
  Case& scales = add("scales_grow", {300}, {40}, {{"return_lse", true}});
  add_scales(scales, true);
  for (const std::size_t scale : {k_scale, v_scale}) {  // up to 500 times, with some zeros, and NaN past the context
    fill.clear();
    for (int i = 0; i < 19 * 2 * 16; ++i) {
      const int page = 18 - i / (2 * 16), row = i % 16;
      fill.push_back(page == 18 && row >= 300 % 16 ? NAN
                     : i % 13 == 5                 ? 0.0
                     : scale == k_scale            ? 0.5
                                                   : std::exp2(page / 2.0 - 5));
    }
    scales.inputs[scale]->fill = values(fill);
  }
  Case& nan = add("nan", {150}, {150});  // a value that not every query may see
  fill.assign(static_cast<std::size_t>(10 * 2 * 16 * 128), 1.5);
  for (std::size_t block : {1, 0}) fill[block * 2 * 16 * 128 + 50 * 16 + 5] = NAN;  // tokens 138 and, past the end, 154
  nan.inputs[v_cache]->fill = values(std::move(fill));
  Case& biased = add("bias", {150}, {40}, {{"softcap", 4.0}, {"return_lse", true}});
  biased.inputs[sinks] = CaseOperand{{DType::f32, {s.heads}}, normal(2)};
  biased.inputs[alibi] = CaseOperand{{DType::f32, {s.heads}}, uniform(0.01, 0.5)};
  s.heads = 2;
  add("alone", {300}, {150});
  s.d = s.dv = 256;
  add("alone_d256", {200}, {140});  // a warpgroup's rows end before the tile's
  s.d = s.dv = 128;
  s.aligned = false;
  add("unaligned", {40, 9}, {20, 1});
  s.aligned = true, s.heads = 6;
  for (const auto& [d, dv, block] : {std::tuple{64, 64, 32}, {96, 96, 64}, {192, 128, 16}, {256, 256, 128}}) {
    s.d = d, s.dv = dv, s.block = block;
    add_scales(add(fmt::format("d{}", d), {300, 20}, {50, 20}, {{"return_lse", true}}), false);
  }
  s.d = s.dv = 64, s.block = 16, s.q = DType::bf16;
  for (const DType cache : {DType::i8, e4m3, DType::f8_e5m2}) {
    s.cache = cache;
    add_scales(add(fmt::format("16_bits_{}", name_of(cache)), {90, 9}, {40, 1}), cache == DType::i8);
  }
  s.q = s.cache = e4m3, s.columns = false;
  add("not", {90, 9}, {40, 1});  // queries of 8 bits, values in rows
}

/// Up to 16 queries of a sequence, and wide heads, whose keys are the same for all.
void add_shared_tiles(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  for (const DType t : {DType::bf16, DType::f16}) {
    Sizes s{.heads = 8, .kv_heads = 2, .d = 128, .dv = 128, .block = 16, .q = t, .cache = t, .aligned = true};
    const auto add = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries = {},
                         Attributes attributes = {}) {
      list.push_back(
          make_case(fmt::format("shared_{}_{}", case_name, name_of(t)), s, contexts, queries, std::move(attributes)));
    };
    const Lengths contexts{40, 130, 16, 7, 0, 300}, queries{16, 5, 16, 1, 3, 2};
    add("queries", contexts, queries, {{"return_lse", true}});
    s.block = 20;
    add("window_nhd", contexts, queries, {{"window", std::int64_t{30}}, {"layout", "nhd"}});
    s.block = 16, s.d = 64, s.dv = 32, s.q = t == DType::bf16 ? DType::f32 : t;
    add("bias", contexts, queries, {{"softcap", 4.0}, {"return_lse", true}});
    list.back().inputs[sinks] = CaseOperand{{DType::f32, {s.heads}}, normal(2)};
    list.back().inputs[alibi] = CaseOperand{{DType::f32, {s.heads}}, uniform(0.01, 0.5)};
    s.d = 80, s.dv = 112, s.q = t, s.heads = 20;
    add("group", {90, 30}, {9, 12}, {{"causal", false}});
    s.d = s.dv = 256, s.heads = 16;
    add("wide", {190, 30, 0, 700}, {}, {{"return_lse", true}});
    s.block = 20;
    add("wide_window_nhd", {40, 130}, {3, 16}, {{"window", std::int64_t{30}}, {"layout", "nhd"}});
    s.block = 16, s.d = 192, s.dv = 64, s.q = t == DType::bf16 ? DType::f32 : t;
    add("wide_queries", {90, 30}, {2, 1});
    s.d = 576, s.dv = 512, s.q = t, s.heads = 16, s.kv_heads = 1;
    add("latent", {70, 33});
    add("latent_queries", {70, 33}, {3, 1});
  }
}

/// Quantized caches with head sizes that tiled kernels take.
void add_quantized_tiles(std::vector<Case>& list) {
  enum class Scales { none, head, token };
  using enum Scales;
  using Lengths = std::vector<std::int64_t>;
  const auto add = [&](std::string_view case_name, const Sizes& s, Scales scales, const Lengths& contexts,
                       const Lengths& queries = {}, Attributes attributes = {}) -> Case& {
    Case c =
        make_case(fmt::format("tiles_{}_{}", case_name, name_of(s.cache)), s, contexts, queries, std::move(attributes));
    if (scales != none) add_scales(c, scales == token);
    return list.emplace_back(std::move(c));
  };
  const auto add_bias = [](Case& c, std::int64_t heads) {
    c.inputs[sinks] = CaseOperand{{DType::f32, {heads}}, normal(2)};
    c.inputs[alibi] = CaseOperand{{DType::f32, {heads}}, uniform(0.01, 0.5)};
  };
  for (const DType cache : {DType::i8, DType::f8_e4m3, DType::f8_e5m2}) {
    Sizes s{
        .heads = 8, .kv_heads = 2, .d = 64, .dv = 64, .block = 16, .q = DType::bf16, .cache = cache, .aligned = true};
    const Scales some = cache == DType::i8 ? head : none;  // int8 has scales always
    add("lse", s, token, {50, 0, 7, 300}, {}, {{"return_lse", true}});
    add("chunk", s, head, {40, 13}, {3, 1});
    add("batch", s, token, {30, 500, 1, 90, 17, 64, 200, 33, 12, 70, 65, 128, 5, 5, 300, 31, 16, 8});
    add("long", s, some, {1500});
    s.block = 20;
    add("window_nhd", s, token, {40, 130}, {}, {{"window", std::int64_t{30}}, {"layout", "nhd"}});
    s.block = 16, s.d = s.dv = 128;
    add("wide", s, token, {190, 30}, {2, 1});
    s.q = DType::f32;
    add_bias(add("wide_bias", s, head, {50, 300}, {}, {{"softcap", 4.0}, {"return_lse", true}}), s.heads);
    s.q = DType::f16, s.heads = 24;
    add("wide_group", s, some, {90, 300}, {}, {{"layout", "nhd"}});
    s.q = DType::bf16, s.heads = 6, s.d = 80, s.dv = 48;
    add("odd", s, token, {90, 30});
    s.d = 96, s.dv = 32;
    add("odd_head_scales", s, head, {90, 30}, {}, {{"layout", "nhd"}});
    s.d = s.dv = 128, s.heads = 8;
    add("queries", s, token, {40, 130, 16, 7, 0, 300}, {16, 5, 16, 1, 3, 2});
    s.d = s.dv = 256;
    add("very_wide", s, token, {90, 30, 300});
    s.q = DType::f32;
    add("very_wide_queries", s, some, {90, 30}, {2, 16}, {{"layout", "nhd"}});
    s.heads = 6, s.d = s.dv = 32;
    add("narrow_queries", s, token, {90, 30}, {9, 16});
  }
  Sizes s{.heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .block = 16, .q = DType::bf16, .cache = DType::f8_e4m3};
  s.aligned = true;
  Case& c = add("nan", s, token, {40}, {3});  // a value that not every query may see
  std::vector<double> fill(static_cast<std::size_t>(3 * s.kv_heads * s.block * s.dv), 1.5);
  fill[static_cast<std::size_t>((s.block * s.kv_heads + 5) * s.dv + 5)] = NAN;
  c.inputs[v_cache]->fill = values(std::move(fill));
  c.inputs[q]->fill = values({1, 300, 3, -4, 5e-5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
}

void add_variants(std::vector<Case>& list) {
  const std::vector<std::int64_t> contexts{13, 40}, queries{5, 3};
  for (const bool causal : {true, false})
    list.push_back(make_case(causal ? "chunk_causal" : "chunk_all", {}, contexts, queries, {{"causal", causal}}));
  list.push_back(make_case("window", {}, {50, 9, 70}, {20, 9, 1}, {{"window", std::int64_t{7}}}));
  list.push_back(make_case("window_all", {}, {50, 9}, {20, 2}, {{"window", std::int64_t{12}}, {"causal", false}}));
  list.push_back(make_case("window_decode", {}, {50, 9, 7, 100}, {}, {{"window", std::int64_t{8}}}));
  const AttributeValue all(false), few(std::int64_t{4}), more(std::int64_t{11}), none(std::int64_t{0});
  list.push_back(make_case("window_uneven", {}, {50, 9}, {20, 9},
                           {{"window_left", more}, {"window_right", few}, {"causal", all}, {"return_lse", true}}));
  list.push_back(make_case("window_right", {}, {50, 9}, {20, 9}, {{"window_right", none}, {"causal", all}}));
  list.push_back(make_case("window_left", {}, {50, 9}, {20, 9}, {{"window_left", few}, {"window", more}}));
  list.push_back(make_case("window_left_decode", {}, {50, 9, 100}, {}, {{"window_left", more}}));
  list.push_back(make_case("softcap", {}, contexts, queries, {{"softcap", 2.5}}));
  list.push_back(make_case("scale_lse", {}, contexts, queries, {{"scale", 0.7}, {"return_lse", true}}));
  list.push_back(make_case("sinks", {}, {13, 0, 40}, {}, {{"return_lse", true}}));
  list.back().inputs[sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
  list.push_back(make_case("block_of_many", {.block = 1000}, {1300, 9}, {20, 2}, {{"layout", "nhd"}}));
  for (const std::vector<std::size_t>& wide :
       {std::vector<std::size_t>{block_tables, context_lens, query_starts}, {block_tables}, {context_lens}}) {
    list.push_back(make_case(fmt::format("wide_indices_{}", wide.size() == 1 ? std::to_string(wide[0]) : "all"), {},
                             contexts, queries, {{"return_lse", true}}));
    for (const std::size_t operand : wide) list.back().inputs[operand]->type.dtype = DType::i64;
  }
  for (const DType cache : {DType::i8, DType::f8_e4m3}) {
    list.push_back(make_case(fmt::format("one_scale_{}", name_of(cache)), {.cache = cache}, contexts, queries));
    add_scales(list.back(), false);
    for (const std::size_t scale : {k_scale, v_scale})
      list.back().inputs[scale]->type.dims = cache == DType::i8 ? Dims{} : Dims{1};
  }
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

}  // namespace

std::vector<Case> incre_flash_attention_cases() {
  std::vector<Case> list;
  add_tiles(list);
  add_wide_tiles(list);
  add_quantized_prefill_tiles(list);
  add_copies(list);
  add_columns(list);
  add_quantized_tiles(list);
  add_shared_tiles(list);
  add_whole_pages(list);
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

}  // namespace cermet::incre_flash_attention_op
