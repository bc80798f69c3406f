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

/// Element d of a cached token, dequantized in float32.
double cached(const ReferenceCall& call, std::size_t which, const KvCacheAxes& axes, std::int64_t sequence,
              std::int64_t head, std::int64_t token, std::int64_t d) {
  const TensorView &keys = call.inputs[k_cache], &tables = call.inputs[block_tables];
  const std::int64_t size = keys.shape[axes.block];
  const std::int64_t block = load_index(tables, sequence * tables.shape[1] + token / size);
  check_index(name, "block_tables", block, keys.shape[0]);
  const CacheRow row = cache_row(call.inputs[which], axes, block, token % size, head);
  const double element = load(call.inputs[which], row.first + d * row.step);
  const std::size_t scale = which - k_cache + k_scale;
  if (!call.has(scale)) return element;
  const bool per_head = call.inputs[scale].shape.rank() < 3;
  return element *
         load(call.inputs[scale], per_head ? head * head_scale_step(call.inputs[scale])
                                           : cache_row(keys, axes, block, token % size, head).first / keys.shape[3]);
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

}  // namespace

std::vector<Case> incre_flash_attention_cases();

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
          "only j <= i, with a window only |i - j| < window; window_left and window_right, where given, take the "
          "window's place on their side: i - j <= window_left and j - i <= window_right. "
          "score = scale * (q . k), then softcap * tanh(score / softcap), then - alibi[h] * |i - j|; o = sum_j "
          "exp(score_j) v_j / (sum_j exp(score_j) + "
          "exp(sinks[h])), float32 "
          "throughout with one rounding at the end; lse[h, t] is the natural logarithm of the denominator, sink "
          "included. Values of an int8 or fp8 cache are "
          "multiplied "
          "by the scale of their head or token. Queries in e4m3 have no scale of their own: it is part of `scale` or "
          "k_scale. v_cache may hold 8-bit values in columns, [blocks, heads, block / 16, Dv, 16], where token t of a "
          "block is at [t / 16, :, t % 8 / 2 * 4 + t % 16 / 8 * 2 + t % 2]. Entries of the cache and of the table past "
          "a context are never read. A "
          "query that sees no key gives o = 0 (and "
          "lse = -inf, or "
          "the sink); a context of 0 marks a sequence of padding, whose queries see nothing. Keys that a query does "
          "not see never reach it, not even as NaN.",
      .inputs =
          {{"q", attention_query_dtypes, "[T, Hq, D]", "queries", Mapping::many_to_many},
           {"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "paged keys", Mapping::many_to_many},
           {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "paged values, or in columns",
            Mapping::many_to_many},
           {"block_tables", dtypes::index, "[B, P]", "blocks of each sequence", Mapping::barrier},
           {"context_lens", dtypes::index, "[B]", "tokens of each sequence, 0 to P * block", Mapping::barrier},
           {"query_starts", dtypes::index, "[B + 1]", "where the queries of each sequence begin; from 0 to T",
            Mapping::barrier, true},
           {"k_scale",
            {DType::f32},
            "[], [heads] or [blocks, heads, block]",
            "scales of an int8 or fp8 cache: one, per head or per token",
            Mapping::one_to_many,
            true},
           {"v_scale",
            {DType::f32},
            "[], [heads] or [blocks, heads, block]",
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
      .cases = incre_flash_attention_cases,
  };
}

}  // namespace cermet::incre_flash_attention_op
