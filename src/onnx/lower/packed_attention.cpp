// com.microsoft's Attention and QAttention: queries, keys and values from one product.
#include "onnx/lower/heads.hpp"
#include "onnx/lower/quantized_product.hpp"

namespace cermet::onnx {
namespace {

void refuse_other_caches(Lowering& l) {
  if (l.integer("do_rotary", 0) != 0)
    l.unsupported("attribute do_rotary: 1 is not supported; RotaryEmbedding nodes are");
  if (l.integer("past_present_share_buffer", 0) != 0)
    l.unsupported("attribute past_present_share_buffer: 1 is not supported: results have memory of their own");
}

/// Attention of qkv [B, S, 2 * H * D + H * Dv].
void attend_to_packed(Lowering& l, Operand qkv, Operand mask, Operand past, Operand bias) {
  l.expect(l.rank(qkv) == 3, "input: expected [batch, sequence, hidden], found {}", l.type(l.in(0)).to_string());
  const std::int64_t heads = l.integer("num_heads", 0), all = l.size(qkv, 2);
  Ints sizes = l.integers("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  l.expect(sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] > 0 && sizes[2] > 0 &&
               sizes[0] + sizes[1] + sizes[2] == all,
           "attribute qkv_hidden_sizes: expected three that add up to {}, the first two equal, found {}", all,
           fmt::join(sizes, ", "));
  const auto part = [&](std::int64_t from, std::int64_t to) { return split_last(l, l.slice(qkv, 2, from, to), heads); };
  Heads h{.q = part(0, sizes[0]), .k = part(sizes[0], 2 * sizes[0]), .v = part(2 * sizes[0], all)};
  if (past) {
    l.expect(l.rank(past) == 5, "past: expected [2, batch, heads, past, size], found {}", l.type(past).to_string());
    prepend_past(l, h, l.squeeze(l.slice(past, 0, 0, 1), {0}), l.squeeze(l.slice(past, 0, 1, 2), {0}));
  }
  h.causal = l.integer("unidirectional", 0) != 0;
  h.scale = l.number("scale", 0);
  h.bias = added_bias(l, mask ? mask_bias(l, mask, h) : Operand{}, bias);
  if (l.wants(0)) l.set(0, attended(l, h));
  if (!l.wants(1)) return;
  const Operand k = h.heads_first ? h.k : swap_heads(l, h.k), v = h.heads_first ? h.v : swap_heads(l, h.v);
  l.set(1, l.concat({l.unsqueeze(k, {0}), l.unsqueeze(v, {0})}, 0));
}

}  // namespace

void lower_attention_ms(Lowering& l) {
  refuse_other_caches(l);
  if (l.has(6))
    l.unsupported("operand 6 (past_sequence_length) is not supported: it belongs to past_present_share_buffer");
  attend_to_packed(l, projected(l, l.in(0), l.in(1), l.in_or_none(2)), l.in_or_none(3), l.in_or_none(4),
                   l.in_or_none(5));
}

void lower_qattention(Lowering& l) {
  refuse_other_caches(l);
  const Operand sum = l.cast(integer_matmul(l, l.in(0), l.in_or_none(6), l.in(1), l.in_or_none(7)), DType::f32);
  const Operand scale = l.binary(OpKind::mul, l.reshape(l.cast(l.in(3), DType::f32), {}), l.cast(l.in(4), DType::f32));
  Operand qkv = l.binary(OpKind::mul, sum, l.elements(scale) == 1 ? l.reshape(scale, {}) : scale);
  qkv = l.cast(l.binary(OpKind::add, qkv, l.cast(l.in(2), DType::f32)), l.dtype(l.in(3)));
  attend_to_packed(l, qkv, l.in_or_none(5), l.in_or_none(8), {});
}

}  // namespace cermet::onnx
