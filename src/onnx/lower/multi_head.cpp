// com.microsoft's MultiHeadAttention: queries, keys and values apart or packed, each with a bias, and a cache.
#include "onnx/lower/heads.hpp"

namespace cermet::onnx {
namespace {

/// Element i of the packed axis of x [B, S, H, n, D], as [B, S, H, D].
Operand unpacked(Lowering& l, Operand x, std::int64_t i) { return l.squeeze(l.slice(x, 3, i, i + 1), {3}); }

/// Operands in the form that they have: packed, or of [B, S, hidden], or keys and values [B, H, T, D] as a cache has
/// them.
Heads operands_of(Lowering& l, std::int64_t heads) {
  const Operand query = l.in(0);
  Heads h;
  if (l.rank(query) == 5) {
    l.expect(l.dim(query, 3) == Dim(3) && !l.has(1) && !l.has(2),
             "query: expected [batch, sequence, heads, 3, size] alone, found {}", l.type(query).to_string());
    return {.q = unpacked(l, query, 0), .k = unpacked(l, query, 1), .v = unpacked(l, query, 2)};
  }
  h.q = split_last(l, query, heads);
  const Operand key = l.in(1);
  if (l.rank(key) == 5) {
    l.expect(l.dim(key, 3) == Dim(2) && !l.has(2),
             "key: expected [batch, sequence, heads, 2, size] without value, found {}", l.type(key).to_string());
    h.k = unpacked(l, key, 0);
    h.v = unpacked(l, key, 1);
    return h;
  }
  h.heads_first = l.rank(key) == 4;
  h.k = h.heads_first ? key : split_last(l, key, heads);
  h.v = h.heads_first ? l.in(2) : split_last(l, l.in(2), heads);
  l.expect(l.rank(h.v) == 4, "value: expected the form of key, found {}", l.type(h.v).to_string());
  return h;
}

/// bias [2 * H * D + H * Dv]; keys and values that come from a cache have theirs already.
void add_biases(Lowering& l, Heads& h, Operand bias) {
  const auto hidden = [&](Operand x, bool heads_first) { return l.size(x, heads_first ? 1 : 2) * l.size(x, 3); };
  const std::int64_t sizes[] = {hidden(h.q, false), hidden(h.k, h.heads_first), hidden(h.v, h.heads_first)},
                     all = sizes[0] + sizes[1] + sizes[2];
  l.expect(l.rank(bias) == 1 && l.dim(bias, 0) == Dim(all), "bias: expected [{}], found {}", all,
           l.type(bias).to_string());
  const auto add = [&](Operand& x, std::int64_t from, std::int64_t to) {
    x = l.binary(OpKind::add, x, l.reshape(l.slice(bias, 0, from, to), {l.dim(x, 2), l.dim(x, 3)}));
  };
  add(h.q, 0, sizes[0]);
  if (h.heads_first) return;
  add(h.k, sizes[0], sizes[0] + sizes[1]);
  add(h.v, sizes[0] + sizes[1], all);
}

}  // namespace

void lower_multi_head_attention(Lowering& l) {
  if (l.has(8)) l.unsupported("operand 8 (past_sequence_length) is not supported: results have memory of their own");
  if (l.has(9)) l.unsupported("operand 9 (cache_indirection) is not supported: beams must be reordered by other nodes");
  Heads h = operands_of(l, l.integer("num_heads", 0));
  if (l.has(3)) add_biases(l, h, l.in(3));
  l.expect(l.has(6) == l.has(7), "expected past_key and past_value together, found one");
  if (l.has(6)) prepend_past(l, h, l.in(6), l.in(7));
  h.causal = l.integer("unidirectional", 0) != 0;
  h.scale = l.number("scale", 0);
  h.bias = added_bias(l, l.has(4) ? mask_bias(l, l.in(4), h) : Operand{}, l.in_or_none(5));
  if (l.wants(1)) l.set(1, h.heads_first ? h.k : swap_heads(l, h.k));
  if (l.wants(2)) l.set(2, h.heads_first ? h.v : swap_heads(l, h.v));
  if (!l.wants(3)) return l.set(0, attended(l, h));
  const auto [y, scores] = attended_with_scores(l, h, Scores::or_lowest);
  l.set(0, y);
  l.set(3, scores);
}

}  // namespace cermet::onnx
