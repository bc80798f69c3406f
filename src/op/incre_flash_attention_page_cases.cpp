// Cases of incre_flash_attention that copy whole pages, and parts of pages.
#include "op/incre_flash_attention_cases.hpp"

#include "op/operands.hpp"

namespace cermet::incre_flash_attention_op {

using enum op::incre_flash_attention::Operand;

void add_copies(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  Sizes s{.heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .q = DType::bf16, .cache = DType::bf16, .aligned = true};
  const auto add = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries,
                       Attributes attributes = {}) {
    list.push_back(make_case(fmt::format("copies_{}", case_name), s, contexts, queries, std::move(attributes)));
  };
  for (const std::int64_t block : {8, 16, 24, 32, 64, 128, 256}) {
    s.block = block;
    s.d = s.dv = block % 32 == 0 ? 64 : 128;
    s.q = s.cache = block % 64 == 0 ? DType::f16 : DType::bf16;
    add(fmt::format("block{}", block), {150, 9, 0, 300}, {30, 9, 0, 20},
        {{"layout", block == 16 || block == 64 ? "nhd" : "hnd"}});
  }
  s = {
      .heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .block = 16, .q = DType::f16, .cache = DType::f16, .aligned = true};
  add("strict", {150, 90}, {40, 20}, {{"strict", true}});
  add("uneven_window", {300}, {90},
      {{"causal", false}, {"window_left", std::int64_t{60}}, {"window_right", std::int64_t{20}}});
  s.block = 512;
  add("block512", {700, 9}, {90, 9});
  s.block = 16;
  add("freed", {300}, {40}, {{"window", std::int64_t{50}}});
  std::vector<double>& pages = list.back().inputs[block_tables]->fill.values;
  std::fill(pages.begin(), pages.begin() + (300 - 40 - 49) / s.block, -1);
  add("end_nan", {37}, {30});
  const std::int64_t rows = list.back().inputs[v_cache]->type.dims[0].constant() * s.kv_heads * s.block;
  std::vector<double> fill(static_cast<std::size_t>(rows * s.dv), 0.5);
  for (std::int64_t head = 0; head < s.kv_heads; ++head)  // the last page is the first block
    std::fill_n(fill.begin() + (head * s.block + 37 % s.block) * s.dv, s.dv, NAN);
  list.back().inputs[v_cache]->fill = values(std::move(fill));
}

void add_whole_pages(std::vector<Case>& list) {
  using Lengths = std::vector<std::int64_t>;
  for (const DType t : {DType::bf16, DType::f16}) {
    Sizes s{.heads = 16, .kv_heads = 4, .d = 128, .dv = 128, .block = 16, .q = t, .cache = t};
    s.aligned = s.whole_pages = true;
    const auto add = [&](std::string_view case_name, const Lengths& contexts, const Lengths& queries = {},
                         Attributes attributes = {}) -> Case& {
      return list.emplace_back(
          make_case(fmt::format("pages_{}_{}", case_name, name_of(t)), s, contexts, queries, std::move(attributes)));
    };
    const auto add_bias = [&](Case& c) {
      c.inputs[sinks] = CaseOperand{{DType::f32, {s.heads}}, normal(2)};
      c.inputs[alibi] = CaseOperand{{DType::f32, {s.heads}}, uniform(0.01, 0.5)};
    };
    add("lse", {50, 0, 7, 700}, {}, {{"return_lse", true}});
    add("window", {50, 9, 300}, {}, {{"window", std::int64_t{20}}});
    add("batch", {30, 500, 1, 90, 17, 64, 200, 33, 12, 70, 65, 128, 5, 5, 300, 31, 16, 8});
    add("long", {3000});
    Case& nan = add("nan", {43});
    const std::int64_t row = s.block * s.kv_heads,
                       elements = row * s.dv;  // of a page; the last page is the first block
    std::vector<double> fill(static_cast<std::size_t>(3 * elements), 1.5);
    for (std::int64_t head = 0; head < s.kv_heads; ++head)
      for (std::int64_t d = 0; d < s.dv; ++d)
        for (std::int64_t token = 43 % s.block; token < s.block; ++token)
          fill[static_cast<std::size_t>((head * s.block + token) * s.dv + d)] = NAN;
    fill[static_cast<std::size_t>(elements + 5)] = INFINITY;  // seen
    nan.inputs[v_cache]->fill = values(std::move(fill));
    s.kv_heads = 2;
    add_bias(add("bias", {50, 300}, {}, {{"softcap", 4.0}, {"return_lse", true}}));
    s.heads = 8;
    add("queries", {40, 130, 16, 7, 0, 300}, {16, 5, 16, 1, 3, 2}, {{"return_lse", true}});
    add("few_queries", {40, 130, 300}, {2, 4, 3});
    add("chunk_window", {40, 130}, {8, 5}, {{"window", std::int64_t{30}}});
    add("prefill", {40, 130, 5}, {40, 70, 0}, {{"return_lse", true}});
    s.heads = 40;
    add("group", {90, 300});
    s.heads = 8, s.block = 64;
    add("block64", {90, 300});
    add("nhd", {90, 300}, {}, {{"layout", "nhd"}});
    s.d = s.dv = 64, s.block = 16, s.kv_heads = 8;
    add("narrow", {90, 300, 16});
    s.kv_heads = 1, s.d = 128;
    add("narrow_values", {90, 300, 16}, {3, 1, 2});
    s.q = t == DType::bf16 ? DType::f32 : t;
    add("mixed", {90, 300, 16});
  }
  for (const DType cache : {DType::i8, DType::f8_e4m3}) {
    Sizes s{.heads = 16, .kv_heads = 4, .d = 128, .dv = 128, .block = 16, .q = DType::bf16, .cache = cache};
    s.aligned = s.whole_pages = true;
    const auto add = [&](std::string_view case_name, bool per_token, const Lengths& contexts,
                         const Lengths& queries = {}, Attributes attributes = {}) {
      Case c =
          make_case(fmt::format("pages_{}_{}", case_name, name_of(cache)), s, contexts, queries, std::move(attributes));
      add_scales(c, per_token);
      list.push_back(std::move(c));
    };
    add("batch", true, {30, 500, 1, 90, 17, 64, 0, 33, 12, 70, 300, 31, 16, 8}, {}, {{"return_lse", true}});
    add("head_scales", false, {30, 500, 1, 90});
    add("queries", true, {40, 130, 16, 7, 0, 300}, {16, 5, 16, 1, 3, 2});
    s.d = s.dv = 256, s.kv_heads = 2;
    add("wide", true, {90, 30, 300}, {}, {{"return_lse", true}});
    add("wide_queries", false, {90, 30}, {2, 16});
    s.d = s.dv = 128, s.block = 64;
    add("block64", true, {90, 300}, {}, {{"window", std::int64_t{70}}});
    add("nhd", false, {90, 300}, {}, {{"layout", "nhd"}});
  }
}

}  // namespace cermet::incre_flash_attention_op
