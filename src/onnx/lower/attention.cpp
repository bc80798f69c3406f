// Attention, as one operator where flash_attention computes exactly that, else from products and a softmax.
#include <cmath>
#include <limits>
#include <numeric>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Operands and attributes of an attention, heads split: q [B, Hq, Sq, D], k [B, Hkv, Sk, D], v [B, Hkv, Sk, Dv].
struct AttentionCall {
  Operand q, k, v;
  Operand mask, past_key, past_value, lengths;  ///< may be none
  bool packed;                                  ///< operands and result are [B, S, H * D]
  std::int64_t heads, kv_heads;
  bool causal;
  std::int64_t left, right;  ///< of the window; -1: no bound
  double scale, softcap;
  DType compute;  ///< of scores and softmax
};

Operand split_heads(Lowering& l, Operand x, std::int64_t heads) {
  const Dims d = l.dims(x);
  const auto size = heads > 0 ? exact_quotient(d[2], heads) : std::nullopt;
  l.expect(size.has_value(), "number of heads: expected a divisor of {}, found {}", d[2].to_string(), heads);
  return l.transpose(l.reshape(x, {d[0], d[1], heads, *size}), {0, 2, 1, 3});
}

/// [B, H, S, D] with each head `times` times.
Operand repeat_heads(Lowering& l, Operand x, std::int64_t times) {
  if (times == 1) return x;
  const Dims d = l.dims(x);
  return l.reshape(l.expand(l.unsqueeze(x, {2}), {d[0], d[1], times, d[2], d[3]}), {d[0], d[1] * times, d[2], d[3]});
}

Operand positions(Lowering& l, const Dim& count, const Dims& dims) { return l.reshape(l.counting(count), dims); }

AttentionCall attention_call(Lowering& l) {
  AttentionCall c{};
  c.q = l.in(0);
  c.packed = l.rank(c.q) == 3;
  c.k = l.in(1);
  c.v = l.in(2);
  for (const Operand x : {c.q, c.k, c.v})
    l.expect(l.rank(x) == (c.packed ? 3 : 4), "expected Q, K and V of 3 or of 4 dimensions, found {}",
             l.type(x).to_string());
  if (c.packed) {
    c.heads = l.integer("q_num_heads", 0);
    c.kv_heads = l.integer("kv_num_heads", 0);
    c.q = split_heads(l, c.q, c.heads);
    c.k = split_heads(l, c.k, c.kv_heads);
    c.v = split_heads(l, c.v, c.kv_heads);
  } else {
    c.heads = l.size(c.q, 1);
    c.kv_heads = l.size(c.k, 1);
  }
  l.expect(c.kv_heads > 0 && c.heads % c.kv_heads == 0, "heads of Q: expected a multiple of {} heads of K, found {}",
           c.kv_heads, c.heads);
  c.mask = l.in_or_none(3);
  c.past_key = l.in_or_none(4);
  c.past_value = l.in_or_none(5);
  c.lengths = l.in_or_none(6);
  l.expect(static_cast<bool>(c.past_key) == static_cast<bool>(c.past_value),
           "expected past_key and past_value together, found one");
  l.expect(!c.past_key || !c.lengths, "expected nonpad_kv_seqlen without past_key, found both");
  c.causal = l.integer("is_causal", 0) != 0;
  c.left = l.integer("left_window_size", -1);
  c.right = l.integer("right_window_size", -1);
  l.expect(c.left >= -1 && c.right >= -1, "window sizes: expected -1 or more, found {} and {}", c.left, c.right);
  c.scale = l.has_attribute("scale") ? l.number("scale", 0) : 1 / std::sqrt(static_cast<double>(l.size(c.q, 3)));
  c.softcap = l.number("softcap", 0);
  const bool twice = l.dtype(c.q) == DType::f64 || (l.has_attribute("softmax_precision") &&
                                                    l.dtype_of_code(l.integer("softmax_precision", 0)) == DType::f64);
  c.compute = twice ? DType::f64 : DType::f32;
  return c;
}

/// flash_attention lines the last query up with the last key.
bool is_flash(const Lowering& l, const AttentionCall& c, const Dim& past) {
  const DType t = l.dtype(c.q);
  const bool types = dtypes::real.contains(t) && l.dtype(c.k) == t && l.dtype(c.v) == t && c.compute == DType::f32;
  if (!types || c.mask || c.lengths || l.wants(3) || c.scale == 0 || c.softcap < 0) return false;
  const bool positional = c.causal || c.left >= 0 || c.right >= 0;
  if (positional && l.dim(c.q, 2) + past != l.dim(c.k, 2)) return false;
  if (c.left >= 0 && !c.causal && c.left != c.right) return false;
  if (c.left < 0 && c.right >= 0 && !c.causal) return false;
  const Dim batch = l.dim(c.q, 0);
  return batch == Dim(1) || (batch.is_constant() && l.dim(c.q, 2).is_constant() && l.dim(c.k, 2).is_constant());
}

/// [B, H, S, D] as [B * S, H, D].
Operand tokens(Lowering& l, Operand x) {
  const Dims d = l.dims(x);
  return l.reshape(l.transpose(x, {0, 2, 1, 3}), {d[0] * d[2], d[1], d[3]});
}

Operand flash(Lowering& l, const AttentionCall& c) {
  const Dim batch = l.dim(c.q, 0);
  std::vector<Operand> operands{tokens(l, c.q), tokens(l, c.k), tokens(l, c.v), {}, {}, {}, {}};
  if (batch == Dim(1)) {
    operands.resize(3);
  } else {
    const auto starts = [&](Operand x) {
      return l.binary(OpKind::mul, l.counting(batch + 1), l.shape_value({l.dim(x, 2)}, true));
    };
    operands[5] = starts(c.q);
    operands[6] = starts(c.k);
  }
  const Operand y = l.op(OpKind::flash_attention, operands,
                         {{"scale", c.scale},
                          {"causal", c.causal},
                          {"softcap", c.softcap},
                          {"window", c.left >= 0 ? c.left + 1 : std::int64_t{0}}});
  const Dims d = l.dims(c.q);
  return l.transpose(l.reshape(y, {d[0], d[2], d[1], l.dim(c.v, 3)}), {0, 2, 1, 3});
}

/// What is added to the scores, [Sq or 1, Sk] or more dimensions: 0 or the mask, -infinity for what a query does not
/// see; none where there is nothing.
Operand attention_bias(Lowering& l, const AttentionCall& c, const Dim& past) {
  Operand seen, added;
  const auto restrict_to = [&](Operand condition) {
    seen = seen ? l.binary(OpKind::logical_and, seen, condition) : condition;
  };
  if (c.mask) {
    Operand mask = c.mask;
    if (l.dim(mask, -1) != l.dim(c.k, 2)) {
      const std::int64_t missing = l.constant(l.dim(c.k, 2) - l.dim(mask, -1));
      l.expect(missing >= 0, "attn_mask: expected at most {} keys, found {}", l.dim(c.k, 2).to_string(),
               l.dim(mask, -1).to_string());
      Ints pads(static_cast<std::size_t>(2 * l.rank(mask)));
      pads.back() = missing;
      mask = l.op(OpKind::pad, {mask},
                  {{"pads", pads}, {"value", l.dtype(mask) == DType::boolean ? 0.0 : minus_infinity}});
    }
    if (l.dtype(mask) == DType::boolean) restrict_to(mask);
    else added = l.cast(mask, c.compute);
  }
  if (c.causal || c.left >= 0 || c.right >= 0) {
    const Dim queries = l.dim(c.q, 2), keys = l.dim(c.k, 2);
    Operand first = l.shape_value({past});
    if (c.lengths)
      first = l.binary(OpKind::sub, l.reshape(l.cast(c.lengths, DType::i64), {l.dim(c.q, 0), 1, 1, 1}),
                       l.shape_value({queries}));
    const Operand at = l.binary(OpKind::add, positions(l, queries, {queries, 1}), first),
                  key = positions(l, keys, {1, keys});
    if (c.causal) restrict_to(l.binary(OpKind::less_equal, key, at));
    if (c.left >= 0)
      restrict_to(l.binary(OpKind::less_equal, l.binary(OpKind::sub, at, key), static_cast<double>(c.left)));
    if (c.right >= 0)
      restrict_to(l.binary(OpKind::less_equal, l.binary(OpKind::sub, key, at), static_cast<double>(c.right)));
  }
  if (c.lengths) {
    const Dim keys = l.dim(c.k, 2);
    restrict_to(l.binary(OpKind::less, positions(l, keys, {keys}),
                         l.reshape(l.cast(c.lengths, DType::i64), {l.dim(c.q, 0), 1, 1, 1})));
  }
  if (!seen) return added;
  return l.op(OpKind::where, {seen, added ? added : l.scalar(c.compute, 0), l.scalar(c.compute, minus_infinity)});
}

/// q k' * scale, [B, Hq, Sq, Sk].
Operand attention_scores(Lowering& l, const AttentionCall& c) {
  const Operand k = repeat_heads(l, c.k, c.heads / c.kv_heads);
  const std::string sums(l.dtype(c.q) == DType::f64 ? "" : "f32");
  const Operand products = l.op(OpKind::matmul, {c.q, k}, {{"transpose_b", true}, {"out_dtype", sums}});
  return l.cast(l.binary(OpKind::mul, products, c.scale), c.compute);
}

Operand composed(Lowering& l, const AttentionCall& c, const Dim& past) {
  const std::int64_t mode = l.integer("qk_matmul_output_mode", 0);
  const DType t = l.dtype(c.q);
  const auto show = [&](std::int64_t stage, Operand x) {
    if (stage == mode && l.wants(3)) l.set(3, l.cast(x, t));
  };
  Operand scores = attention_scores(l, c);
  show(0, scores);
  if (c.softcap > 0)
    scores = l.binary(OpKind::mul, l.unary(OpKind::tanh, l.binary(OpKind::div, scores, c.softcap)), c.softcap);
  show(1, scores);
  const Operand bias = attention_bias(l, c, past);
  if (bias) scores = l.binary(OpKind::add, scores, bias);
  show(2, scores);
  Operand p = l.op(OpKind::softmax, {scores});
  if (bias) {  // a query that sees no key: zeros
    const Operand none = l.binary(OpKind::equal, l.reduce(OpKind::reduce_max, bias, {-1}, true), minus_infinity);
    p = l.op(OpKind::where, {none, l.scalar(c.compute, 0), p});
  }
  show(3, p);
  const Operand v = repeat_heads(l, c.v, c.heads / c.kv_heads);
  return l.cast(l.op(OpKind::matmul, {l.cast(p, t), v}), t);
}

}  // namespace

void lower_attention(Lowering& l) {
  AttentionCall c = attention_call(l);
  Dim past = 0;
  if (c.past_key) {
    past = l.dim(c.past_key, 2);
    c.k = l.concat({c.past_key, c.k}, 2);
    c.v = l.concat({c.past_value, c.v}, 2);
  }
  l.set(1, c.k);
  l.set(2, c.v);
  const bool positional = c.causal || c.left >= 0 || c.right >= 0;
  Operand y = is_flash(l, c, past) ? flash(l, c) : composed(l, c, positional ? past : Dim(0));
  if (c.packed) {
    y = l.transpose(y, {0, 2, 1, 3});
    y = l.reshape(y, {l.dim(y, 0), l.dim(y, 1), l.dim(y, 2) * l.dim(y, 3)});
  }
  l.set(0, y);
}

/// score_mod and prob_mod are graphs from scores to scores and from probabilities to probabilities.
void lower_flex_attention(Lowering& l) {
  const AttentionCall c = attention_call(l);
  l.expect(!c.packed, "expected operands of 4 dimensions, found 3");
  const bool score_mod = l.has_attribute("score_mod"), prob_mod = l.has_attribute("prob_mod");
  if (!score_mod && !prob_mod && is_flash(l, c, 0)) return l.set(0, flash(l, c));
  const auto modified = [&](std::string_view attribute, Operand x) {
    const std::vector<Operand> results = l.graph_results(attribute, {x});
    l.expect(results.size() == 1 && l.dims(results[0]) == l.dims(x),
             "attribute {}: expected a graph of one result {}, found {}", attribute, l.type(x).to_string(),
             results.size() == 1 ? l.type(results[0]).to_string() : fmt::format("{} results", results.size()));
    return l.cast(results[0], l.dtype(x));
  };
  Operand scores = attention_scores(l, c);
  if (score_mod) scores = modified("score_mod", scores);
  Operand p = l.op(OpKind::softmax, {scores});
  if (prob_mod) p = modified("prob_mod", p);
  const DType t = l.dtype(c.q);
  const Operand v = l.cast(repeat_heads(l, c.v, c.heads / c.kv_heads), c.compute);
  l.set(0, l.cast(l.op(OpKind::matmul, {p, v}), t));
}

}  // namespace cermet::onnx
