#include "op/attention.hpp"
#include "op/attention_layout.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::flash_attention_op {
namespace {

using enum op::flash_attention::Operand;
constexpr std::string_view name = "flash_attention";

std::vector<TensorType> infer(const Problem& p) {
  for (const std::size_t operand : {k, v}) expect_dtype(p, operand, p.input(q).dtype, "that of q");
  if (BatchedAttention::is(p)) return infer_batched_attention(p);
  expect_rank(p, k, 3);
  expect_rank(p, v, 3);
  for (const std::size_t operand : {bias, mask, lengths})
    if (p.has(operand))
      bad_operand(p, operand, "nothing where sequences stand one after the other", p.input(operand).to_string());
  if (p.attributes.text("empty_rows") != "nan")
    bad_attribute(p, "empty_rows", "nan where sequences stand one after the other");
  for (int axis = 0; axis < 2; ++axis) expect_dim(p, v, axis, dim_of(p, k, axis), "that of k");
  auto outputs = infer_attention(p, dim_of(p, k, 1), dim_of(p, k, 2), dim_of(p, v, 2), sinks, alibi);
  if (p.has(cu_seqlens)) expect_rank(p, cu_seqlens, 1);
  if (p.has(cu_seqlens) && dim_of(p, cu_seqlens, 0) == Dim(0))
    bad_operand(p, cu_seqlens, "at least one element", p.input(cu_seqlens).to_string());
  if (p.has(cu_seqlens_k)) {
    if (!p.has(cu_seqlens))
      bad_operand(p, cu_seqlens, "bounds of the queries, because those of the keys are given", "nothing");
    expect_dims(p, cu_seqlens_k, p.input(cu_seqlens).dims, "those of cu_seqlens");
  } else if (p.has(cu_seqlens)) {
    expect_dim(p, k, 0, dim_of(p, q, 0), "tokens of q, because cu_seqlens_k is not given");
  }
  return outputs;
}

struct Span {
  std::int64_t begin, end;
};

Span span_of(const ReferenceCall& call, std::size_t bounds, std::int64_t b, std::int64_t tokens) {
  if (!call.has(bounds)) return {0, tokens};
  const std::int64_t sequences = call.inputs[bounds].shape[0] - 1;
  const Span span{load_index(call.inputs[bounds], b), load_index(call.inputs[bounds], b + 1)};
  const bool fits = span.begin <= span.end && span.end <= tokens && (b > 0 || span.begin == 0) &&
                    (b + 1 < sequences || span.end == tokens);
  require(fits, "{}: operand {} ({}): expected values that rise from 0 to {}, found {} to {} for sequence {}", name,
          bounds, definition(OpKind::flash_attention).inputs[bounds].name, tokens, span.begin, span.end, b);
  return span;
}

void reference(const ReferenceCall& call) {
  if (call.inputs[q].shape.rank() == 4) return reference_batched_attention(call);
  const TensorView &queries = call.inputs[q], &keys = call.inputs[k];
  const std::int64_t heads = queries.shape[1], kv_heads = keys.shape[1], value_size = call.inputs[v].shape[2];
  const AttentionSettings settings(call.attributes, queries.shape[2]);
  const std::int64_t sequences = call.has(cu_seqlens) ? call.inputs[cu_seqlens].shape[0] - 1 : 1;
  for (std::int64_t b = 0; b < sequences; ++b) {
    const Span from = span_of(call, cu_seqlens, b, queries.shape[0]);
    const Span to = span_of(call, call.has(cu_seqlens_k) ? cu_seqlens_k : cu_seqlens, b, keys.shape[0]);
    for (std::int64_t t = from.begin; t < from.end; ++t)
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto element = [&, head](const TensorView& list) {
          return [&, head](std::int64_t j, std::int64_t d) {
            return load(list, ((to.begin + j) * kv_heads + head / (heads / kv_heads)) * list.shape[2] + d);
          };
        };
        const std::int64_t count = to.end - to.begin, row = t * heads + head;
        const ReferenceKeys all{count, count - (from.end - t), element(keys), element(call.inputs[v])};
        reference_attention(call, settings,
                            {row * queries.shape[2], row * value_size, head * queries.shape[0] + t, head}, all, sinks,
                            alibi);
      }
  }
}

struct Sizes {
  std::int64_t tokens = 20, keys = 20, heads = 4, kv_heads = 2, d = 16, dv = 16;
  DType dtype = DType::f32;
  bool aligned = false;  ///< rows of q and k are multiples of 8 elements apart, as tiled kernels need them
};

Case make_case(std::string case_name, const Sizes& s, Attributes attributes = {}) {
  Case c{std::move(case_name),
         {CaseOperand{{s.dtype, {s.tokens, s.heads, s.d}}, normal(), s.aligned ? 8 : 3},
          CaseOperand{{s.dtype, {s.keys, s.kv_heads, s.d}}, normal(), s.aligned ? 8 : 1},
          CaseOperand{{s.dtype, {s.keys, s.kv_heads, s.dv}}}},
         std::move(attributes)};
  c.inputs.resize(cu_seqlens_k + 1);
  return c;
}

CaseOperand bounds(std::vector<double> list, DType dtype = DType::i32) {
  const auto count = static_cast<std::int64_t>(list.size());
  return {{dtype, {count}}, values(std::move(list))};
}

void add_variants(std::vector<Case>& list) {
  const auto window = [](std::int64_t w) { return AttributeValue(w); };
  list.push_back(make_case("all", {}, {{"causal", false}}));
  list.push_back(make_case("more_keys", {.tokens = 7, .keys = 90}));
  list.push_back(make_case("more_queries", {.tokens = 30, .keys = 13}, {{"return_lse", true}}));
  list.push_back(make_case("no_keys", {.tokens = 3, .keys = 0}, {{"return_lse", true}}));
  list.push_back(make_case("no_queries", {.tokens = 0, .keys = 9}));
  list.push_back(make_case("window", {.tokens = 90, .keys = 90}, {{"window", window(5)}}));
  list.push_back(make_case("window_all", {.tokens = 40, .keys = 90}, {{"window", window(20)}, {"causal", false}}));
  list.push_back(make_case("window_uneven", {.tokens = 40, .keys = 90},
                           {{"window_left", window(20)}, {"window_right", window(5)}, {"causal", false}}));
  list.push_back(make_case("softcap_scale", {}, {{"softcap", 3.0}, {"scale", 1.5}, {"return_lse", true}}));
  list.push_back(make_case("sinks_alibi", {}, {{"return_lse", true}, {"out_dtype", "f16"}}));
  list.back().inputs[sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
  list.back().inputs[alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
  list.push_back(make_case("alibi_all", {}, {{"causal", false}}));
  list.back().inputs[alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
  list.push_back(make_case("ragged", {.tokens = 100, .keys = 100}, {{"return_lse", true}}));
  list.back().inputs[cu_seqlens] = bounds({0, 1, 1, 68, 100});
  list.push_back(make_case("ragged_keys", {.tokens = 20, .keys = 150}));
  list.back().inputs[cu_seqlens] = bounds({0, 5, 17, 20}, DType::i64);
  list.back().inputs[cu_seqlens_k] = bounds({0, 120, 140, 150}, DType::i64);
  list.push_back(make_case("no_sequences", {.tokens = 0, .keys = 0}));
  list.back().inputs[cu_seqlens] = bounds({0});
}

/// 16-bit types with head sizes that tiled kernels take: several tiles of rows and keys, masks across them, values that
/// rows must not see.
void add_tiles(std::vector<Case>& list) {
  for (const DType t : {DType::bf16, DType::f16}) {
    const auto add = [&](std::string_view case_name, Sizes s, Attributes attributes = {}) {
      s.dtype = t;
      s.aligned = true;
      list.push_back(make_case(fmt::format("tiles_{}_{}", case_name, name_of(t)), s, std::move(attributes)));
    };
    add("lse", {.tokens = 75, .keys = 75, .heads = 8, .d = 64, .dv = 64}, {{"return_lse", true}});
    add("all", {.tokens = 70, .keys = 130, .heads = 2, .kv_heads = 1, .d = 128, .dv = 128}, {{"causal", false}});
    add("window", {.tokens = 150, .keys = 190, .heads = 2, .kv_heads = 1, .d = 64, .dv = 128},
        {{"window", std::int64_t{40}}});
    add("more_queries", {.tokens = 90, .keys = 60, .heads = 2, .kv_heads = 2, .d = 64, .dv = 64},
        {{"return_lse", true}});
    add("odd", {.tokens = 70, .keys = 130, .heads = 3, .kv_heads = 1, .d = 72, .dv = 24});
    add("ragged", {.tokens = 200, .keys = 260, .heads = 2, .kv_heads = 1, .d = 128, .dv = 64});
    list.back().inputs[cu_seqlens] = bounds({0, 70, 70, 71, 200});
    list.back().inputs[cu_seqlens_k] = bounds({0, 70, 80, 120, 260});
    add("256", {.tokens = 90, .keys = 100, .heads = 2, .kv_heads = 1, .d = 256, .dv = 256}, {{"return_lse", true}});
    add("odd_wide", {.tokens = 30, .keys = 70, .heads = 3, .kv_heads = 1, .d = 200, .dv = 232});
    add("512", {.tokens = 40, .keys = 70, .heads = 2, .kv_heads = 1, .d = 512, .dv = 512}, {{"causal", false}});
    add("mla", {.tokens = 20, .keys = 50, .heads = 4, .kv_heads = 1, .d = 576, .dv = 512}, {{"return_lse", true}});
    add("bias", {.tokens = 40, .keys = 70, .heads = 4, .kv_heads = 2, .d = 64, .dv = 64},
        {{"softcap", 4.0}, {"return_lse", true}});
    list.back().inputs[sinks] = CaseOperand{{DType::f32, {4}}, normal(2)};
    list.back().inputs[alibi] = CaseOperand{{DType::f32, {4}}, uniform(0.01, 0.5)};
    for (const std::int64_t d : {64, 24}) {
      add(fmt::format("future_nan{}", d), {.tokens = 150, .keys = 150, .heads = 2, .kv_heads = 1, .d = d, .dv = d});
      std::vector<double> fill(static_cast<std::size_t>(150 * d), 1.5);
      fill[static_cast<std::size_t>(137 * d + 5)] = NAN;
      fill[static_cast<std::size_t>(20 * d + 9)] = INFINITY;
      list.back().inputs[v]->fill = values(std::move(fill));
    }
  }
}

/// Rows of keys [tokens, 1, d], those of token j times factor(j).
template <class Factor>
Fill scaled_rows(std::int64_t tokens, std::int64_t d, Factor factor) {
  std::vector<double> list;
  std::uint32_t state = 1;
  for (std::int64_t j = 0; j < tokens; ++j)
    for (std::int64_t i = 0; i < d; ++i) {
      state = state * 1664525u + 1013904223u;
      list.push_back((static_cast<double>(state >> 8) * 0x1p-23 - 1) * factor(j, i));
    }
  return values(std::move(list));
}

/// 16-bit types in all head sizes that bulk tensor copies take: several tiles of keys, groups that do not divide a
/// tile's rows, scores that weights relative to the first tile's maximum cannot hold, values of other sequences that
/// are NaN.
void add_copies(std::vector<Case>& list) {
  const auto add = [&](std::string_view case_name, Sizes s, Attributes attributes = {}) {
    s.aligned = true;
    list.push_back(make_case(fmt::format("copies_{}", case_name), s, std::move(attributes)));
  };
  const auto type_of = [&] { return list.size() % 2 == 0 ? DType::bf16 : DType::f16; };
  for (const std::int64_t d : {32, 40, 56, 72, 96, 112, 120, 160, 192, 208, 256})
    add(fmt::format("d{}", d),
        {.tokens = 60, .keys = 170, .heads = 2, .kv_heads = 1, .d = d, .dv = d == 192 ? 128 : d, .dtype = type_of()});
  for (const DType t : {DType::bf16, DType::f16}) {
    const auto named = [&](std::string_view case_name) { return fmt::format("{}_{}", case_name, name_of(t)); };
    const Sizes usual{.tokens = 90, .keys = 330, .heads = 2, .kv_heads = 1, .d = 64, .dv = 64, .dtype = t};
    add(named("strict"), usual, {{"strict", true}, {"return_lse", true}});
    add(named("strict_wide"), {.tokens = 40, .keys = 290, .heads = 2, .kv_heads = 1, .d = 256, .dv = 256, .dtype = t},
        {{"strict", true}});
    add(named("strict_softcap"), usual, {{"strict", true}, {"softcap", 3.0}});
    add(named("jumps"), usual, {{"return_lse", true}});
    list.back().inputs[k]->fill = scaled_rows(330, 64, [](std::int64_t j, std::int64_t) {
      return j < 120 ? 1.0 : j < 200 ? 60.0 : j < 250 ? 3.0 : 600.0;
    });
    add(named("falls"), usual, {{"return_lse", true}});
    list.back().inputs[k]->fill =
        scaled_rows(330, 64, [](std::int64_t j, std::int64_t) { return j < 70 ? 60.0 : 2.0; });
    add(named("outlier"), usual, {{"strict", t == DType::f16}});
    list.back().inputs[k]->fill =
        scaled_rows(330, 64, [](std::int64_t, std::int64_t i) { return i == 7 ? 100.0 : 1.0; });
    add(named("grows"), {.tokens = 90, .keys = 420, .heads = 2, .kv_heads = 1, .d = 128, .dv = 128, .dtype = t},
        {{"causal", false}});
    list.back().inputs[k]->fill =
        scaled_rows(420, 128, [](std::int64_t j, std::int64_t) { return 1.0 + 0.1 * static_cast<double>(j); });
    add(named("ends_nan"), {.tokens = 150, .keys = 150, .heads = 2, .kv_heads = 1, .d = 64, .dv = 64, .dtype = t});
    list.back().inputs[cu_seqlens] = bounds({0, 1, 50, 50, 150});
    std::vector<double> fill(150 * 64, 0.5);
    std::fill(fill.begin() + 64 * 50, fill.begin() + 64 * 54, NAN);
    list.back().inputs[v]->fill = values(std::move(fill));
  }
  for (const DType t : {DType::bf16, DType::f16}) {  // wide heads
    const auto add_wide = [&](std::string_view case_name, std::int64_t tokens, std::int64_t keys, std::int64_t heads,
                              std::int64_t d, std::int64_t dv, Attributes attributes = {}) -> Case& {
      add(fmt::format("wide_{}_{}", case_name, name_of(t)),
          {.tokens = tokens, .keys = keys, .heads = heads, .kv_heads = 1, .d = d, .dv = dv, .dtype = t},
          std::move(attributes));
      return list.back();
    };
    add_wide("odd", 12, 330, 8, 576, 512, {{"return_lse", true}});
    add_wide("group", 2, 140, 72, 512, 512, {{"causal", false}, {"return_lse", true}});
    Case& biased = add_wide("window", 40, 200, 3, 264, 328, {{"window", std::int64_t{70}}, {"softcap", 4.0}});
    biased.inputs[sinks] = CaseOperand{{DType::f32, {3}}, normal(2)};
    biased.inputs[alibi] = CaseOperand{{DType::f32, {3}}, uniform(0.01, 0.5)};
    add_wide("jumps", 10, 330, 7, 328, 264, {{"return_lse", true}}).inputs[k]->fill =
        scaled_rows(330, 328, [](std::int64_t j, std::int64_t) {
          return j < 50 ? 1.0 : j < 100 ? 60.0 : j < 150 ? 3.0 : j < 200 ? 200.0 : 600.0;
        });
    Case& ragged = add_wide("ends_nan", 60, 260, 2, 320, 192, {{"out_dtype", "f32"}});
    ragged.inputs[cu_seqlens] = bounds({0, 10, 40, 40, 60});
    ragged.inputs[cu_seqlens_k] = bounds({0, 130, 160, 160, 260});
    std::vector<double> fill(260 * 192, 0.5);
    std::fill(fill.begin() + 192 * 160, fill.begin() + 192 * 164, NAN);
    ragged.inputs[v]->fill = values(std::move(fill));
  }
  add("group5", {.tokens = 50, .keys = 120, .heads = 10, .kv_heads = 2, .d = 64, .dv = 64, .dtype = DType::bf16},
      {{"return_lse", true}});
  add("group7", {.tokens = 33, .keys = 33, .heads = 7, .kv_heads = 1, .d = 128, .dv = 128, .dtype = DType::f16});
  add("windows", {.tokens = 300, .keys = 310, .heads = 1, .kv_heads = 1, .d = 64, .dv = 64, .dtype = DType::bf16},
      {{"window", std::int64_t{64}}, {"return_lse", true}});
  add("windows_all", {.tokens = 250, .keys = 250, .heads = 1, .kv_heads = 1, .d = 128, .dv = 128, .dtype = DType::f16},
      {{"window", std::int64_t{81}}, {"causal", false}});
  add("windows_uneven",
      {.tokens = 250, .keys = 250, .heads = 1, .kv_heads = 1, .d = 128, .dv = 128, .dtype = DType::f16},
      {{"window_left", std::int64_t{70}}, {"window_right", std::int64_t{3}}, {"causal", false}});
  add("one_key", {.tokens = 3, .keys = 1, .heads = 4, .kv_heads = 1, .d = 64, .dv = 64, .dtype = DType::bf16},
      {{"return_lse", true}});
  add("float_result", {.tokens = 40, .keys = 100, .heads = 2, .kv_heads = 2, .d = 80, .dv = 80, .dtype = DType::bf16},
      {{"out_dtype", "f32"}, {"strict", true}});
  add("rows", {.tokens = 300, .keys = 300, .heads = 8, .kv_heads = 1, .d = 128, .dv = 128, .dtype = DType::bf16});
  add("own_keys", {.tokens = 300, .keys = 330, .heads = 2, .kv_heads = 2, .d = 128, .dv = 128, .dtype = DType::bf16});
  // More items than a large GPU has SMs.
  add("items", {.tokens = 70, .keys = 70, .heads = 140, .kv_heads = 140, .d = 64, .dv = 64, .dtype = DType::bf16});
  list.back().inputs[cu_seqlens] = bounds({0, 20, 70});
}

std::vector<Case> cases() {
  std::vector<Case> list;
  add_tiles(list);
  add_copies(list);
  // Enough rows for every SM of a large GPU to have several tiles.
  list.push_back(make_case("tiles_blocks",
                           {.tokens = 540,
                            .keys = 540,
                            .heads = 32,
                            .kv_heads = 32,
                            .d = 64,
                            .dv = 64,
                            .dtype = DType::bf16,
                            .aligned = true},
                           {{"window", std::int64_t{70}}}));
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    list.push_back(make_case(fmt::format("{}", name_of(t)), {.dtype = t}));
  for (std::int64_t d : {1, 8, 24, 40, 64, 96, 192, 256})
    list.push_back(make_case(fmt::format("d{}", d),
                             {.tokens = 9, .keys = 12, .heads = 3, .kv_heads = 1, .d = d, .dv = d == 192 ? 128 : d}));
  list.push_back(make_case("one_token", {.tokens = 1, .keys = 1, .heads = 1, .kv_heads = 1}));
  list.push_back(make_case("long_keys", {.tokens = 2, .keys = 1500, .heads = 2, .kv_heads = 1, .d = 8, .dv = 8}));
  list.push_back(make_case("many_tokens", {.tokens = 150, .keys = 170, .heads = 2, .kv_heads = 2, .d = 8, .dv = 8}));
  add_variants(list);
  add_batched_attention_cases(list);
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Attention and cache",
      .summary = "Attention of sequences side by side: prefill, encoders, training shapes",
      .semantics =
          "q, k and v hold the tokens of all sequences one after the other. Sequence b has the queries cu_seqlens[b] "
          ".. cu_seqlens[b + 1] and the keys "
          "cu_seqlens_k[b] .. cu_seqlens_k[b + 1]; "
          "without cu_seqlens_k those of cu_seqlens, without both there is one sequence. Its last query stands at its "
          "last key (bottom-right alignment): query "
          "i of m sees key j of n at "
          "distance (n - m + i) - j. Everything else is as in incre_flash_attention: heads in groups, scale, softcap, "
          "alibi, causal, windows, sinks, lse, and "
          "the queries that see no key "
          "(with causal, the first m - n where there are fewer keys than queries), which give o = 0 and lse = -inf. "
          "Operands of rank 4 hold a batch of "
          "sequences of one length instead, each with all of its keys; the layouts name the order in which they keep "
          "sequences (b), heads (h), tokens (s) and "
          "elements (d). Then bias is added to the scores behind alibi, masked_score stands where mask is false, and "
          "the sum is rounded to float32; a query "
          "whose scores are all -inf gives NaN, as softmax does, or zeros with empty_rows = zero, and a value whose "
          "weight is 0 never reaches the result. lengths says how many keys each sequence has, of those that k and v "
          "hold: its last query stands at the last of them.",
      .inputs =
          {{"q", dtypes::real, "[T, Hq, D] or [B, S, Hq, D]", "queries", Mapping::many_to_many},
           {"k", dtypes::real, "[S, heads, D] or [B, T, heads, D]", "keys", Mapping::many_to_many},
           {"v", dtypes::real, "[S, heads, Dv] or [B, T, heads, Dv]", "values", Mapping::many_to_many},
           {"sinks",
            {DType::f32},
            "[Hq]",
            "a score per head that takes part in the denominator only",
            Mapping::one_to_many,
            true},
           {"alibi", {DType::f32}, "[Hq]", "slopes of a penalty that grows with distance", Mapping::one_to_many, true},
           {"cu_seqlens", dtypes::index, "[B + 1]", "bounds of the sequences in q, from 0 to T", Mapping::barrier,
            true},
           {"cu_seqlens_k", dtypes::index, "[B + 1]", "bounds of the sequences in k and v, from 0 to S",
            Mapping::barrier, true},
           {"bias", dtypes::real, "[B?, Hq?, S?, T?]", "of rank 4: is added to the scores; broadcasts to them",
            Mapping::one_to_many, true},
           {"mask",
            {DType::boolean},
            "[B?, Hq?, S?, T?]",
            "of rank 4: false where a key is not seen; broadcasts to the scores",
            Mapping::one_to_many,
            true},
           {"lengths", dtypes::index, "[B]", "of rank 4: keys of each sequence; all where it is not given",
            Mapping::barrier, true}},
      .outputs = {{"o", dtypes::real, "[T, Hq, Dv] or [B, S, Hq, Dv]", "attention"},
                  {"lse", {DType::f32}, "[Hq, T] or [B, Hq, S]", "with return_lse: log of the denominators"}},
      .attributes =
          [] {
            auto attributes = attention_attributes();
            for (AttributeSpec& a : batched_attention_attributes()) attributes.push_back(std::move(a));
            return attributes;
          }(),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            const bool batched = BatchedAttention::is(p);
            const BatchedAttention a(p.attributes);
            const std::int64_t tokens = batched ? p.size(q, 0) * p.size(q, a.q.tokens) : p.size(q, 0),
                               heads = p.size(q, batched ? a.q.heads : 1);
            const double pairs = static_cast<double>(tokens) *
                                 static_cast<double>(p.size(k, batched ? a.k.tokens : 0)) *
                                 (p.attributes.flag("causal") ? 0.5 : 1);
            return 2 * pairs *
                   static_cast<double>(heads * (p.size(q, batched ? a.q.size : 2) + p.size(v, batched ? a.v.size : 2)));
          },
      .rounding_depth =
          [](const Problem& p) {
            const BatchedAttention a(p.attributes);
            return BatchedAttention::is(p) ? attention_rounding_depth(p.size(q, a.q.size), p.size(k, a.k.tokens))
                                           : attention_rounding_depth(p.size(q, 2), p.size(k, 0));
          },
      .cases = cases,
  };
}

}  // namespace cermet::flash_attention_op
