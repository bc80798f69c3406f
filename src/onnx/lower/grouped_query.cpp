// com.microsoft's GroupQueryAttention: heads in groups, a rotation, and a cache whose sequences have lengths of their
// own.
#include <algorithm>

#include "onnx/lower/heads.hpp"

namespace cermet::onnx {
namespace {

void refuse_other_forms(Lowering& l) {
  const auto refuse = [&](std::string_view attribute) {
    if (l.integer(attribute, 0) != 0)
      l.unsupported("attribute {}: {} is not supported", attribute, l.integer(attribute, 0));
  };
  refuse("sliding_window_cache");
  refuse("kv_cache_bit_width");
  for (const std::string_view attribute : {"k_quant_type", "v_quant_type"})
    if (l.text(attribute, "NONE") != "NONE")
      l.unsupported("attribute {}: {} is not supported: caches have the type of query", attribute,
                    l.text(attribute, ""));
  if (l.has(12) || l.has(13))
    l.unsupported("operands k_scale and v_scale are not supported: caches have the type of query");
  if (l.has(16)) l.unsupported("operand query_seqlens is not supported");
}

/// Queries, keys and values of operands that are packed or apart.
Heads operands_of_group(Lowering& l, std::int64_t heads, std::int64_t kv_heads) {
  const Operand query = l.in(0);
  if (l.has(1))
    return {
        .q = split_last(l, query, heads), .k = split_last(l, l.in(1), kv_heads), .v = split_last(l, l.in(2), kv_heads)};
  const Operand all = split_last(l, query, heads + 2 * kv_heads);
  return {.q = l.slice(all, 2, 0, heads),
          .k = l.slice(all, 2, heads, heads + kv_heads),
          .v = l.slice(all, 2, heads + kv_heads, heads + 2 * kv_heads)};
}

/// RMS norms of each head of queries and keys, before they are turned.
void normalize_heads(Lowering& l, Heads& h) {
  l.expect(l.has(14) == l.has(15), "expected q_norm_weight and k_norm_weight together, found one");
  if (!l.has(14)) return;
  const double both = l.number("qk_norm_epsilon", 1e-6);
  h.q = l.op(OpKind::rms_norm, {h.q, l.in(14)}, {{"eps", l.number("q_norm_epsilon", both)}});
  h.k = l.op(OpKind::rms_norm, {h.k, l.in(15)}, {{"eps", l.number("k_norm_epsilon", both)}});
}

/// The cache before this call, and where in it the new tokens go.
struct Cache {
  Operand past_key, past_value;
  Operand before;  ///< [B, 1] i64: tokens of each sequence that are there; none: all of past, of every sequence
  Dim total;       ///< tokens of present
};

Cache cache_of(Lowering& l, const Heads& h) {
  Cache c;
  l.expect(l.has(3) == l.has(4), "expected past_key and past_value together, found one");
  const Dim batch = l.dim(h.q, 0), tokens = l.dim(h.q, 1);
  Dim past = 0;
  if (l.has(3)) {
    c.past_key = l.in(3);
    c.past_value = l.in(4);
    l.expect(l.rank(c.past_key) == 4 && l.dims(c.past_key) == l.dims(c.past_value),
             "past_key and past_value: expected [batch, heads, past, size], found {} and {}",
             l.type(c.past_key).to_string(), l.type(c.past_value).to_string());
    past = l.dim(c.past_key, 2);
  }
  const Dims stated = l.dims_in(l.in(6));
  l.expect(stated.size() == 1, "total_sequence_length: expected one number, found {}", l.type(l.in(6)).to_string());
  const bool is_first = same_size(l, stated[0], tokens), grows = same_size(l, stated[0], past + tokens);
  c.total = stated[0];
  if (past == Dim(0)) c.past_key = c.past_value = {};
  l.expect(c.past_key || grows, "total_sequence_length: expected {} where there is no past, found {}",
           tokens.to_string(), stated[0].to_string());
  if (!c.past_key) return c;
  if (!grows) c.total = std::max(l.constant(past), l.constant(stated[0]));
  if (grows && batch == Dim(1)) return c;  // seqlens_k says the same
  const Operand length = l.reshape(l.cast(l.in(5), DType::i64), {batch, 1});
  const Operand before =
      l.binary(OpKind::sub, l.binary(OpKind::add, length, 1.0), static_cast<double>(l.constant(tokens)));
  c.before = is_first ? l.binary(OpKind::mul, before, 0.0) : before;
  return c;
}

/// Past [B, H, P, D] up to `before` of each sequence, then what is new [B, H, S, D], then zeros.
Operand present(Lowering& l, Operand past, Operand fresh, const Cache& c) {
  const std::int64_t length = l.size(past, 2), tokens = l.size(fresh, 2), total = l.constant(c.total);
  const Dims d = l.dims(fresh);
  const Operand at = l.unsqueeze(counted(l, total), {0});  // [1, T]
  const Operand later = l.binary(OpKind::sub, at, c.before);
  const Operand is_old = l.binary(OpKind::less, later, 0.0),
                is_there = l.binary(OpKind::less, later, static_cast<double>(tokens));
  const Operand from = l.op(OpKind::where, {is_old, at, l.binary(OpKind::add, later, static_cast<double>(length))});
  const Operand place = l.op(OpKind::where, {is_there, from, l.scalar(DType::i64, 0)});  // [B, T]
  const Operand places = l.expand(l.reshape(place, {d[0], 1, total, 1}), {d[0], d[1], total, 1});
  const Operand rows = l.op(OpKind::gather_nd, {l.concat({past, fresh}, 2), places}, {{"batch_dims", std::int64_t{2}}});
  return l.op(OpKind::where, {l.reshape(is_there, {d[0], 1, total, 1}), rows, l.scalar(l.dtype(fresh), 0)});
}

/// Which keys a query sees where sequences have lengths of their own, [B, 1, S or 1, T].
Operand seen_in_cache(Lowering& l, const Heads& h, const Cache& c) {
  const Dim batch = l.dim(h.q, 0);
  const Operand key = l.reshape(counted(l, l.constant(c.total)), {1, 1, 1, c.total});
  if (!h.causal) return l.binary(OpKind::less_equal, key, l.reshape(l.cast(l.in(5), DType::i64), {batch, 1, 1, 1}));
  const Operand place = l.reshape(counted(l, l.size(h.q, 1)), {1, 1, l.dim(h.q, 1), 1});
  const Operand at = l.binary(OpKind::add, place, l.reshape(c.before, {batch, 1, 1, 1}));
  const Operand seen = l.binary(OpKind::less_equal, key, at);
  if (h.window == 0) return seen;
  return l.binary(OpKind::logical_and, seen,
                  l.binary(OpKind::less, l.binary(OpKind::sub, at, key), static_cast<double>(h.window)));
}

/// Cosines or sines of the tokens' positions, [B or 1, S, 1, R / 2].
Operand angles(Lowering& l, std::size_t operand, const Heads& h, const Cache& c) {
  Operand at;
  if (l.has(9)) {
    at = l.cast(l.in(9), DType::i64);
  } else {
    at = l.unsqueeze(counted(l, l.size(h.q, 1)), {0});
    if (c.before) at = l.binary(OpKind::add, at, c.before);
    else if (c.past_key) at = l.binary(OpKind::add, at, static_cast<double>(l.size(c.past_key, 2)));
  }
  return l.unsqueeze(l.op(OpKind::gather, {l.in(operand), at}, {{"axis", std::int64_t{0}}}), {2});
}

Operand sinks_of(Lowering& l, std::int64_t heads) {
  if (l.has(11)) return l.in(11);
  return l.integer("smooth_softmax", -1) == 1 ? l.filled({heads}, DType::f32, 0) : Operand{};
}

}  // namespace

void lower_group_query_attention(Lowering& l) {
  refuse_other_forms(l);
  const std::int64_t heads = l.integer("num_heads", 0), kv_heads = l.integer("kv_num_heads", 0),
                     window = l.integer("local_window_size", -1);
  l.expect(heads > 0 && kv_heads > 0 && heads <= (1 << 20) && heads % kv_heads == 0,
           "attribute num_heads: expected a multiple of kv_num_heads, found {} and {}", heads, kv_heads);
  Heads h = operands_of_group(l, heads, kv_heads);
  h.causal = l.integer("causal", 1) != 0;
  h.window = window > 0 ? window : 0;
  h.scale = l.number("scale", 0);
  h.softcap = l.number("softcap", 0);
  h.sinks = sinks_of(l, heads);
  h.bias = l.in_or_none(10);
  const Cache c = cache_of(l, h);
  normalize_heads(l, h);
  if (l.integer("do_rotary", 0) != 0) {
    const Operand cos = angles(l, 7, h, c), sin = angles(l, 8, h, c);
    const bool interleaved = l.integer("rotary_interleaved", 0) != 0;
    h.q = rotated(l, h.q, cos, sin, interleaved);
    h.k = rotated(l, h.k, cos, sin, interleaved);
  }
  if (c.before) {
    h.k = present(l, c.past_key, swap_heads(l, h.k), c);
    h.v = present(l, c.past_value, swap_heads(l, h.v), c);
    h.heads_first = true;
    h.mask = seen_in_cache(l, h, c);
    h.causal = false;
    h.window = 0;
  } else if (c.past_key) {
    prepend_past(l, h, c.past_key, c.past_value);
  } else if (!h.causal && l.dim(h.q, 0) != Dim(1)) {
    h.mask = seen_in_cache(l, h, c);
  }
  if (l.wants(1)) l.set(1, h.heads_first ? h.k : swap_heads(l, h.k));
  if (l.wants(2)) l.set(2, h.heads_first ? h.v : swap_heads(l, h.v));
  if (!l.wants(3)) return l.set(0, attended(l, h));
  const auto [y, scores] =
      attended_with_scores(l, h, l.integer("qk_output", 0) == 1 ? Scores::or_zero : Scores::probabilities);
  l.set(0, y);
  l.set(3, scores);
}

}  // namespace cermet::onnx
