#include "onnx/lower/heads.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace cermet::onnx {
namespace {

Dim tokens_of(Lowering& l, const Heads& h) { return l.dim(h.k, h.heads_first ? 2 : 1); }

/// [B, H, T, D] with each head `times` times.
Operand each_head(Lowering& l, Operand x, std::int64_t times) {
  if (times == 1) return x;
  const Dims d = l.dims(x);
  return l.reshape(l.expand(l.unsqueeze(x, {2}), {d[0], d[1], times, d[2], d[3]}), {d[0], d[1] * times, d[2], d[3]});
}

/// Whether query and key are in sight of one another, [S, T], for `causal` and `window`; none where all are.
Operand in_sight(Lowering& l, const Heads& h) {
  if (!h.causal && h.window == 0) return {};
  const std::int64_t queries = l.size(h.q, 1), keys = l.constant(tokens_of(l, h));
  const Operand at = l.binary(OpKind::add, l.unsqueeze(counted(l, queries), {1}), static_cast<double>(keys - queries));
  const Operand distance = l.binary(OpKind::sub, at, l.unsqueeze(counted(l, keys), {0}));
  Operand seen = h.causal ? l.binary(OpKind::greater_equal, distance, 0.0) : Operand{};
  if (h.window > 0) {
    const Operand near = l.binary(OpKind::less, l.unary(OpKind::abs, distance), static_cast<double>(h.window));
    seen = seen ? l.binary(OpKind::logical_and, seen, near) : near;
  }
  return seen;
}

}  // namespace

bool same_size(Lowering& l, const Dim& a, const Dim& b) { return a == b || l.constant(a) == l.constant(b); }

Operand counted(Lowering& l, std::int64_t count) {
  Ints values(l.listed(count));
  std::iota(values.begin(), values.end(), 0);
  return l.ints(values);
}

Operand split_last(Lowering& l, Operand x, std::int64_t heads) {
  l.expect(l.rank(x) == 3, "expected [batch, sequence, hidden], found {}", l.type(x).to_string());
  const Dims d = l.dims(x);
  const auto size = heads > 0 ? exact_quotient(d[2], heads) : std::nullopt;
  l.expect(size.has_value(), "attribute num_heads: expected a divisor of {}, found {}", d[2].to_string(), heads);
  return l.reshape(x, {d[0], d[1], heads, *size});
}

Operand swap_heads(Lowering& l, Operand x) { return l.transpose(x, {0, 2, 1, 3}); }

void prepend_past(Lowering& l, Heads& h, Operand past_key, Operand past_value) {
  l.expect(l.rank(past_key) == 4 && l.rank(past_value) == 4,
           "past: expected [batch, heads, past, size], found {} and {}", l.type(past_key).to_string(),
           l.type(past_value).to_string());
  if (!h.heads_first) {
    h.k = swap_heads(l, h.k);
    h.v = swap_heads(l, h.v);
  }
  h.heads_first = true;
  h.k = l.concat({past_key, h.k}, 2);
  h.v = l.concat({past_value, h.v}, 2);
}

Operand attended(Lowering& l, const Heads& h) {
  const Dims q = l.dims(h.q);
  if (l.dtype(h.q) == DType::f64) return attended_with_scores(l, h, Scores::probabilities).first;
  const std::string order(h.heads_first ? "bhsd" : "bshd");
  std::vector<Operand> operands{h.q, h.k,    h.v,   h.sinks ? l.cast(h.sinks, DType::f32) : Operand{}, {}, {},
                                {},  h.bias, h.mask};
  while (!operands.back()) operands.pop_back();
  const Operand y = l.op(OpKind::flash_attention, operands,
                         {{"scale", h.scale},
                          {"causal", h.causal},
                          {"softcap", h.softcap},
                          {"window", h.window},
                          {"k_layout", order},
                          {"v_layout", order}});
  return l.reshape(y, {q[0], q[1], l.dim(y, 2) * l.dim(y, 3)});
}

std::pair<Operand, Operand> attended_with_scores(Lowering& l, Heads h, Scores shown) {
  const DType t = l.dtype(h.q), compute = t == DType::f64 ? DType::f64 : DType::f32;
  const double scale = h.scale != 0 ? h.scale : 1 / std::sqrt(static_cast<double>(l.size(h.q, 3)));
  const Operand q = swap_heads(l, h.q);
  if (!h.heads_first) {
    h.k = swap_heads(l, h.k);
    h.v = swap_heads(l, h.v);
    h.heads_first = true;
  }
  const std::int64_t times = l.size(q, 1) / l.size(h.k, 1);
  Operand scores =
      l.op(OpKind::matmul, {l.cast(q, compute), l.cast(each_head(l, h.k, times), compute)}, {{"transpose_b", true}});
  scores = l.binary(OpKind::mul, scores, scale);
  if (h.softcap > 0)
    scores = l.binary(OpKind::mul, l.unary(OpKind::tanh, l.binary(OpKind::div, scores, h.softcap)), h.softcap);
  if (h.bias) scores = l.binary(OpKind::add, scores, l.cast(h.bias, compute));
  const Operand before = scores, sight = in_sight(l, h);
  Operand seen = sight;
  if (h.mask) seen = sight ? l.binary(OpKind::logical_and, h.mask, sight) : h.mask;
  const double hidden = -std::numeric_limits<double>::infinity();
  if (seen) scores = l.op(OpKind::where, {seen, scores, l.scalar(compute, hidden)});
  Operand p;
  if (h.sinks) {  // one more column, which no value belongs to
    const Dims d = l.dims(scores);
    const Operand column =
        l.expand(l.reshape(l.cast(h.sinks, compute), {1, l.dim(h.sinks, 0), 1, 1}), {d[0], d[1], d[2], 1});
    p = l.slice(l.unary(OpKind::softmax, l.concat({scores, column}, 3)), 3, 0, l.constant(d[3]));
  } else {
    p = l.unary(OpKind::softmax, scores);
  }
  const Operand y = swap_heads(l, l.cast(l.op(OpKind::matmul, {p, l.cast(each_head(l, h.v, times), compute)}), t));
  const Operand result = l.reshape(y, {l.dim(y, 0), l.dim(y, 1), l.dim(y, 2) * l.dim(y, 3)});
  if (shown == Scores::probabilities || !seen) return {result, l.cast(shown == Scores::probabilities ? p : before, t)};
  const double hidden_score =
      shown == Scores::or_zero ? 0.0 : static_cast<double>(std::numeric_limits<float>::lowest());
  return {result, l.cast(l.op(OpKind::where, {seen, before, l.scalar(compute, hidden_score)}), t)};
}

Operand added_bias(Lowering& l, Operand a, Operand b) {
  if (!a || !b) return a ? a : b;
  return l.binary(OpKind::add, l.cast(a, DType::f32), l.cast(b, DType::f32));
}

Operand mask_bias(Lowering& l, Operand mask, const Heads& h) {
  const Dim batch = l.dim(h.q, 0), queries = l.dim(h.q, 1), keys = tokens_of(l, h);
  const double filter = l.number("mask_filter_value", -10000);
  const Dims given = l.dims(mask);
  Operand seen;
  if (given.size() == 1) {
    const bool one = same_size(l, given[0], batch), both = !one && same_size(l, given[0], batch * 2);
    l.expect(one || both, "mask_index: expected [{}], [{}] or 2 to 4 dimensions, found {}", batch.to_string(),
             (batch * 2).to_string(), l.type(mask).to_string());
    const auto bound = [&](std::int64_t part) {
      const Operand list = both ? l.slice(mask, 0, part * l.constant(batch), (part + 1) * l.constant(batch)) : mask;
      return l.reshape(l.cast(list, DType::i64), {batch, 1, 1, 1});
    };
    const Operand at = counted(l, l.constant(keys));
    seen = l.binary(OpKind::less, at, bound(0));
    if (both) seen = l.binary(OpKind::logical_and, seen, l.binary(OpKind::greater_equal, at, bound(1)));
  } else {
    if (given.size() == 4) {  // of all positions: rows and columns of those that are here
      const std::int64_t total = l.constant(keys), last = l.constant(queries);
      l.expect(total <= l.size(mask, 2) && total <= l.size(mask, 3),
               "mask_index: expected at least {} positions, found {}", total, l.type(mask).to_string());
      mask = l.slice(l.slice(mask, 2, total - last, total), 3, 0, total);
    } else {
      l.expect(given.size() <= 3 && given.size() >= 2, "mask_index: expected 1 to 4 dimensions, found {}",
               l.type(mask).to_string());
      mask = given.size() == 2 ? l.reshape(mask, {given[0], 1, 1, given[1]})
                               : l.reshape(mask, {given[0], 1, given[1], given[2]});
    }
    l.expect(same_size(l, l.dim(mask, 3), keys), "mask_index: expected {} keys, found {}", keys.to_string(),
             l.type(mask).to_string());
    seen = l.binary(OpKind::greater, mask, 0.0);
  }
  return l.op(OpKind::where, {seen, l.scalar(DType::f32, 0), l.scalar(DType::f32, filter)});
}

Operand projected(Lowering& l, Operand x, Operand weight, Operand bias) {
  l.expect(l.rank(weight) == 2, "weight: expected 2 dimensions, found {}", l.type(weight).to_string());
  if (dtypes::real.contains(l.dtype(x))) {
    std::vector<Operand> operands{x, l.transpose(weight, {1, 0})};
    if (bias) operands.push_back(bias);
    return l.op(OpKind::linear, operands);
  }
  const Operand y = l.op(OpKind::matmul, {x, weight});
  return bias ? l.binary(OpKind::add, y, bias) : y;
}

}  // namespace cermet::onnx
