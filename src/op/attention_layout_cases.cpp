#include "op/attention_layout.hpp"
#include "op/operands.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::size_t q_at = op::flash_attention::q, v_at = op::flash_attention::v, bias_at = op::flash_attention::bias,
                      mask_at = op::flash_attention::mask, lengths_at = op::flash_attention::lengths;

struct Sizes {
  std::int64_t batch = 2, tokens = 20, keys = 20, heads = 4, kv_heads = 4, d = 16, dv = 16;
  DType dtype = DType::f32;
  std::int64_t padding = 8;
  std::string q = "bshd", k = "bshd", v = "bshd", o = "bshd";
};

Dims laid_out(const std::string& layout, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
              std::int64_t size) {
  const AttentionAxes axes(layout);
  Dims dims(4, Dim(batch));
  dims[static_cast<std::size_t>(axes.tokens)] = tokens;
  dims[static_cast<std::size_t>(axes.heads)] = heads;
  dims[static_cast<std::size_t>(axes.size)] = size;
  return dims;
}

Case make_case(std::string name, const Sizes& s, Attributes attributes = {}, std::optional<CaseOperand> bias_of = {},
               std::optional<CaseOperand> mask_of = {}) {
  Case c{std::move(name),
         {CaseOperand{{s.dtype, laid_out(s.q, s.batch, s.tokens, s.heads, s.d)}, normal(), s.padding},
          CaseOperand{{s.dtype, laid_out(s.k, s.batch, s.keys, s.kv_heads, s.d)}, normal(), s.padding},
          CaseOperand{{s.dtype, laid_out(s.v, s.batch, s.keys, s.kv_heads, s.dv)}, normal(), s.padding}},
         std::move(attributes)};
  c.inputs.resize(lengths_at + 1);
  c.inputs[bias_at] = std::move(bias_of);
  c.inputs[mask_at] = std::move(mask_of);
  if (!c.attributes.find("causal")) c.attributes.set("causal", false);
  c.attributes.set("q_layout", s.q);
  c.attributes.set("k_layout", s.k);
  c.attributes.set("v_layout", s.v);
  c.attributes.set("o_layout", s.o);
  return c;
}

/// 16-bit types with rows that tiled kernels take: several tiles of rows and keys, biases and masks across them.
void add_tiles(std::vector<Case>& list) {
  const double least = -3.4028234663852886e38;
  for (const DType t : {DType::bf16, DType::f16}) {
    const auto add = [&](std::string_view name, Sizes s, Attributes attributes = {},
                         std::optional<CaseOperand> bias_of = {}, std::optional<CaseOperand> mask_of = {}) {
      s.dtype = t;
      list.push_back(make_case(fmt::format("batched_tiles_{}_{}", name, name_of(t)), s, std::move(attributes),
                               std::move(bias_of), std::move(mask_of)));
    };
    const CaseOperand keys{{DType::boolean, {2, 1, 1, 133}}, values({1, 1, 0, 1, 1, 1, 0}), 0};
    add("lse", {.tokens = 150, .keys = 197, .heads = 3, .kv_heads = 3, .d = 64, .dv = 64}, {{"return_lse", true}});
    add("mask", {.tokens = 70, .keys = 133, .d = 64, .dv = 64, .q = "bhsd", .k = "bhsd", .v = "bhsd", .o = "bhsd"}, {},
        {}, keys);
    add("bias_odd", {.tokens = 70, .keys = 133, .d = 64, .dv = 32}, {}, CaseOperand{{t, {2, 1, 70, 133}}, normal(), 3},
        keys);
    add("bias_pairs", {.tokens = 70, .keys = 132, .d = 32, .dv = 64}, {{"return_lse", true}},
        CaseOperand{{t, {4, 70, 132}}, normal(), 4},
        CaseOperand{{DType::boolean, {70, 132}}, values({1, 1, 0, 1, 0, 1, 1}), 0});
    add("bias_of_keys", {.tokens = 40, .keys = 128, .d = 128, .dv = 128}, {},
        CaseOperand{{DType::f32, {2, 1, 1, 128}}, normal(), 0});
    add("group", {.tokens = 70, .keys = 90, .heads = 6, .kv_heads = 2, .d = 48, .dv = 80, .o = "bhsd"},
        {{"causal", true}}, CaseOperand{{t, {6, 1, 90}}, normal()});
    add("window_softcap", {.tokens = 90, .keys = 120, .d = 72, .dv = 24},
        {{"window", std::int64_t{20}}, {"softcap", 3.0}}, CaseOperand{{DType::f32, {90, 120}}, normal()});
    add("sinks_alibi", {.tokens = 70, .keys = 70, .heads = 4, .kv_heads = 2, .d = 64, .dv = 64},
        {{"return_lse", true}, {"causal", true}}, {}, CaseOperand{{DType::boolean, {70, 70}}, values({1, 1, 0, 1, 1})});
    list.back().inputs[op::flash_attention::sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
    list.back().inputs[op::flash_attention::alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
    add("least_bias", {.tokens = 20, .keys = 40}, {},
        CaseOperand{{DType::f32, {2, 1, 20, 40}}, values({least, least, 0, least, least}), 0});
    add("all_least", {.tokens = 20, .keys = 40}, {}, CaseOperand{{DType::f32, {20, 1}}, values({least, 0, 1}), 0});
    add("all_masked", {.tokens = 20, .keys = 40}, {}, {}, CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
    add("all_masked_zero", {.tokens = 20, .keys = 40}, {{"empty_rows", "zero"}}, {},
        CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
    add("all_masked_zero_64", {.tokens = 20, .keys = 40, .d = 64, .dv = 64}, {{"empty_rows", "zero"}}, {},
        CaseOperand{{DType::boolean, {20, 40}}, values({1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})});
    for (const std::int64_t d : {48, 64}) {
      add(fmt::format("lengths_{}", d), {.batch = 3, .tokens = 70, .keys = 210, .d = d, .dv = d},
          {{"causal", true}, {"return_lse", true}});
      list.back().inputs[lengths_at] = CaseOperand{{DType::i32, {3}}, values({210, 131, 30}), 0};
      std::vector<double> fill(static_cast<std::size_t>(3 * 210 * 4 * d), 0.5);
      std::fill(fill.end() - 4 * d, fill.end(), NAN);  // behind the last sequence's keys
      list.back().inputs[v]->fill = values(std::move(fill));
    }
    for (const bool masked : {true, false}) {
      add(masked ? "masked_nan" : "nan", {.tokens = 20, .keys = 40}, {}, {},
          masked ? std::optional(CaseOperand{{DType::boolean, {1, 1, 1, 40}}, values({1, 1, 1, 0, 1})}) : std::nullopt);
      std::vector<double> poisoned(static_cast<std::size_t>(40 * 4 * 16), 0.5);
      poisoned[3 * 64 + 5] = NAN;
      poisoned[8 * 64 + 9] = INFINITY;
      list.back().inputs[v]->fill = values(std::move(poisoned));
    }
  }
}

}  // namespace

void add_batched_attention_cases(std::vector<Case>& list) {
  add_tiles(list);
  const auto add = [&](const std::string& name, const Sizes& s, Attributes attributes = {},
                       std::optional<CaseOperand> bias_of = {}, std::optional<CaseOperand> mask_of = {}) {
    list.push_back(make_case("batched_" + name, s, std::move(attributes), std::move(bias_of), std::move(mask_of)));
  };
  const CaseOperand keys{{DType::boolean, {2, 1, 1, 20}}, values({1, 1, 0, 1, 1, 1, 0}), 0},
      all{{DType::boolean, {20, 20}}, values({1, 1, 0, 1, 0, 1, 1}), 0};
  for (const DType t : {DType::f32, DType::bf16, DType::f16}) {
    const std::string type(name_of(t));
    add(type, {.dtype = t});
    add(type + "_head_64", {.tokens = 70, .keys = 133, .heads = 3, .kv_heads = 3, .d = 64, .dv = 64, .dtype = t});
    add(type + "_bias", {.dtype = t}, {}, CaseOperand{{t, {1, 4, 20, 20}}, normal(), 3});
    add(type + "_bias_f32", {.dtype = t}, {}, CaseOperand{{DType::f32, {2, 1, 1, 20}}, normal()});
    add(type + "_mask", {.dtype = t}, {}, {}, keys);
    add(type + "_group",
        {.tokens = 33,
         .keys = 70,
         .heads = 6,
         .kv_heads = 2,
         .d = 40,
         .dv = 24,
         .dtype = t,
         .k = "bhds",
         .v = "bhsd",
         .o = "bhsd"},
        {{"causal", true}}, CaseOperand{{t, {6, 1, 70}}, normal()});
  }
  for (const char* layout : {"bshd", "bhsd", "bhds"}) {
    add(std::string("q_") + layout, {.q = layout}, {}, CaseOperand{{DType::f32, {20, 1}}, normal()});
    add(std::string("k_") + layout, {.keys = 90, .k = layout});
    add(std::string("v_") + layout, {.keys = 90, .dv = 24, .v = layout});
  }
  add("o_bhsd", {.tokens = 70, .padding = 0, .o = "bhsd"});
  add("scale", {}, {{"scale", 1.5}});
  add("causal", {.tokens = 90, .keys = 90}, {{"causal", true}});
  add("causal_more_keys", {.tokens = 7, .keys = 90}, {{"causal", true}});
  add("causal_more_queries", {.tokens = 9, .keys = 5}, {{"causal", true}});
  add("window", {.tokens = 90, .keys = 90}, {{"window", std::int64_t{20}}},
      CaseOperand{{DType::f32, {90, 90}}, normal()});
  add("softcap", {}, {{"softcap", 3.0}}, CaseOperand{{DType::f32, {20, 20}}, normal()});
  add("sinks_alibi_lse", {.heads = 4, .kv_heads = 2}, {{"return_lse", true}, {"causal", true}}, {}, all);
  list.back().inputs[op::flash_attention::sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
  list.back().inputs[op::flash_attention::alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
  add("narrow_out", {}, {{"out_dtype", "f16"}});
  add("wide_out", {.dtype = DType::bf16}, {{"out_dtype", "f32"}});
  add("mask_of_all", {}, {}, CaseOperand{{DType::f32, {4, 20, 20}}, normal()}, all);
  add("finite_mask", {}, {{"masked_score", -1e9}}, {}, all);
  add("all_masked", {}, {}, {}, CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
  add("all_masked_finite", {}, {{"masked_score", -3.4028234663852886e38}}, {},
      CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
  add("least_bias", {}, {},
      CaseOperand{{DType::f32, {2, 1, 20, 20}}, values({0, 0, -3.4028234663852886e38, 0, -3.4028234663852886e38}), 0});
  add("infinite_bias", {}, {},
      CaseOperand{{DType::f32, {1, 1, 20, 20}}, values({0, 0, -INFINITY, 0, -INFINITY, 0, 0})});
  add("one_query", {.batch = 3, .tokens = 1, .keys = 600, .d = 64, .dv = 64}, {},
      CaseOperand{{DType::f32, {3, 1, 1, 600}}, normal()});
  add("long_keys", {.batch = 1, .tokens = 3, .keys = 1500, .heads = 2, .kv_heads = 1, .d = 8, .dv = 8}, {},
      CaseOperand{{DType::f32, {1500}}, normal()});
  add("one_token", {.batch = 1, .tokens = 1, .keys = 1, .heads = 1, .kv_heads = 1, .d = 1, .dv = 1, .padding = 0});
  add("odd_sizes", {.batch = 1, .tokens = 17, .keys = 65, .heads = 3, .kv_heads = 1, .d = 7, .dv = 33, .padding = 1});
  add("all_masked_zero", {}, {{"empty_rows", "zero"}, {"return_lse", true}}, {},
      CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
  add("infinite_bias_zero", {}, {{"empty_rows", "zero"}}, CaseOperand{{DType::f32, {20, 1}}, values({0, -INFINITY})});
  add("all_masked_zero_sinks", {}, {{"empty_rows", "zero"}}, {},
      CaseOperand{{DType::boolean, {20, 1}}, values({1, 0, 1})});
  list.back().inputs[op::flash_attention::sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
  const auto add_lengths = [&](const std::string& name, const Sizes& s, std::vector<double> lengths, DType type,
                               Attributes attributes = {}, std::optional<CaseOperand> mask_of = {}) {
    add("lengths_" + name, s, std::move(attributes), {}, std::move(mask_of));
    list.back().inputs[lengths_at] = CaseOperand{{type, {s.batch}}, values(std::move(lengths)), 0};
  };
  add_lengths("decode", {.batch = 4, .tokens = 1, .keys = 700, .heads = 4, .kv_heads = 2, .k = "bhsd", .v = "bhsd"},
              {700, 1, 0, 333}, DType::i64);
  add_lengths("causal", {.batch = 2, .tokens = 30, .keys = 90}, {61, 90}, DType::i32, {{"causal", true}});
  add_lengths("fewer_than_queries", {.batch = 2, .tokens = 9, .keys = 20}, {5, 20}, DType::i32,
              {{"causal", true}, {"return_lse", true}});
  add_lengths("window", {.batch = 2, .tokens = 9, .keys = 60}, {33, 60}, DType::i32,
              {{"causal", true}, {"window", std::int64_t{7}}});
  add_lengths("mask", {.batch = 2}, {13, 20}, DType::i32, {}, keys);
  add("no_queries", {.tokens = 0});
  add("no_keys", {.keys = 0});
  add("no_sequences", {.batch = 0});
  add("masked_nan", {}, {}, {}, CaseOperand{{DType::boolean, {1, 1, 1, 20}}, values({1, 1, 1, 0, 1})});
  std::vector<double> poisoned(static_cast<std::size_t>(20 * 4 * 16), 0.5);
  poisoned[3 * 64 + 5] = NAN;
  poisoned[8 * 64 + 9] = INFINITY;
  list.back().inputs[v_at]->fill = values(std::move(poisoned));
  add("nan_query", {}, {}, CaseOperand{{DType::f32, {20, 20}}, normal()});
  std::vector<double> queries(static_cast<std::size_t>(20 * 4 * 16), 0.25);
  queries[5 * 64 + 3] = NAN;
  list.back().inputs[q_at]->fill = values(std::move(queries));
}

}  // namespace cermet
