// What stands around attention: rotary positions, recurrent forms of it, causal convolutions, caches.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/lower/heads.hpp"

namespace cermet::onnx {
namespace {

/// cos and sin are [B or 1, S, R / 2].
void rotary(Lowering& l, Operand x, Operand cos, Operand sin, std::int64_t heads) {
  const Dims given = l.dims(x);
  const bool packed = given.size() == 3;
  l.expect(packed || given.size() == 4, "expected 3 or 4 dimensions, found {}", l.type(x).to_string());
  if (packed) {
    const auto size = heads > 0 ? exact_quotient(given[2], heads) : std::nullopt;
    l.expect(size.has_value(), "attribute num_heads: expected a divisor of {}, found {}", given[2].to_string(), heads);
    x = l.reshape(x, {given[0], given[1], heads, *size});
  }
  const std::int64_t head_size = l.size(x, 3), attribute = l.integer("rotary_embedding_dim", 0),
                     turned = attribute > 0 ? attribute : head_size;
  l.expect(turned <= head_size && turned % 2 == 0,
           "attribute rotary_embedding_dim: expected an even number up to {}, found {}", head_size, turned);
  for (Operand* table : {&cos, &sin}) {
    l.expect(l.size(*table, -1) == turned / 2, "cos_cache and sin_cache: expected {} columns, found {}", turned / 2,
             l.type(*table).to_string());
    *table = l.unsqueeze(*table, {packed ? 2 : 1});  // heads are axis 2 of [B, S, H, D], axis 1 of [B, H, S, D]
  }
  l.set(0, l.reshape(rotated(l, x, cos, sin, l.integer("interleaved", 0) != 0), given));
}

Operand row_of(Lowering& l, Operand x, std::int64_t t) { return l.slice(x, 1, t, t + 1); }  // [B, T, ..] -> [B, 1, ..]

}  // namespace

void lower_rotary_embedding(Lowering& l) {
  Operand cos = l.in(1), sin = l.in(2);
  if (l.has(3)) {
    cos = l.op(OpKind::gather, {cos, l.in(3)}, {{"axis", std::int64_t{0}}});
    sin = l.op(OpKind::gather, {sin, l.in(3)}, {{"axis", std::int64_t{0}}});
  }
  rotary(l, l.in(0), cos, sin, l.integer("num_heads", 0));
}

/// com.microsoft: positions come second, one of them is where the tokens begin.
void lower_rotary_embedding_ms(Lowering& l) {
  if (l.integer("is_packed_batching", 0) != 0) l.unsupported("attribute is_packed_batching is not supported");
  if (l.number("scale", 1) != 1) l.unsupported("attribute scale is not supported");
  Operand at = l.in(1);
  const Operand x = l.in(0);
  if (l.rank(at) == 1) {
    Ints steps(l.listed(l.size(x, l.rank(x) == 3 ? 1 : 2)));
    std::iota(steps.begin(), steps.end(), 0);
    at = l.unsqueeze(l.binary(OpKind::add, l.cast(at, DType::i64), l.ints(steps)), {0});
  }
  const auto table = [&](std::size_t i) { return l.op(OpKind::gather, {l.in(i), at}, {{"axis", std::int64_t{0}}}); };
  std::int64_t heads = l.integer("num_heads", 0);
  if (heads == 0 && l.rank(x) == 3)
    heads = l.size(x, 2) / std::max<std::int64_t>(1, 2 * l.size(l.in(2), 1));  // the caches tell a head's size
  rotary(l, x, table(2), table(3), heads);
}

/// One step after another; the state is [B, Hkv, Dk, Dv] in float32.
void lower_linear_attention(Lowering& l) {
  const std::int64_t heads = l.integer("q_num_heads", 0), kv_heads = l.integer("kv_num_heads", 0);
  l.expect(kv_heads > 0 && heads > 0 && heads % kv_heads == 0,
           "attribute q_num_heads: expected a positive multiple of kv_num_heads, found {} and {}", heads, kv_heads);
  const std::string rule = l.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  l.expect(gated || delta || rule == "linear",
           "attribute update_rule: expected linear, gated, delta or gated_delta, found {}", rule);
  const Operand query = l.in(0);
  const DType t = l.dtype(query);
  const Dim batch = l.dim(query, 0);
  const std::int64_t steps = l.size(query, 1), dk = l.size(query, 2) / heads, dv = l.size(l.in(2), 2) / kv_heads;
  const auto wide = [&](Operand x) { return l.cast(x, DType::f32); };
  const Operand q = l.reshape(wide(query), {batch, steps, kv_heads, heads / kv_heads, dk});
  const Operand k = l.reshape(wide(l.in(1)), {batch, steps, kv_heads, dk}),
                v = l.reshape(wide(l.in(2)), {batch, steps, kv_heads, 1, dv});
  const Operand keep =
      gated ? l.unary(OpKind::exp,
                      l.reshape(wide(l.in(4)), {batch, steps, kv_heads, floor_div(l.dim(l.in(4), 2), kv_heads), 1}))
            : Operand{};
  const Operand rate = delta ? l.reshape(wide(l.in(5)), {batch, steps, l.dim(l.in(5), 2), 1, 1}) : Operand{};
  Operand state = l.has(3) ? wide(l.in(3)) : l.filled({batch, kv_heads, dk, dv}, DType::f32, 0);
  const double scale = l.number("scale", 0) == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : l.number("scale", 0);
  std::vector<Operand> results;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto at = [&](Operand x) { return l.squeeze(row_of(l, x, i), {1}); };
    const Operand key = at(k);
    Operand value = at(v);  // [B, Hkv, 1, Dv]
    if (gated) state = l.binary(OpKind::mul, state, at(keep));
    if (delta)
      value = l.binary(OpKind::mul, at(rate),
                       l.binary(OpKind::sub, value, l.op(OpKind::matmul, {l.unsqueeze(key, {2}), state})));
    state = l.binary(OpKind::add, state, l.binary(OpKind::mul, l.unsqueeze(key, {3}), value));
    if (l.wants(0)) results.push_back(l.reshape(l.op(OpKind::matmul, {at(q), state}), {batch, 1, heads * dv}));
  }
  if (l.wants(0))
    l.set(0, l.cast(steps == 0 ? l.filled({batch, 0, heads * dv}, t, 0)
                               : l.binary(OpKind::mul, l.concat(results, 1), scale),
                    t));
  l.set(1, l.cast(state, l.has(3) ? l.dtype(l.in(3)) : t));
}

void lower_causal_conv_with_state(Lowering& l) {
  const Operand x = l.in(0), weight = l.in(1);
  const std::string activation = l.text("activation", "none");
  l.expect(activation == "none" || activation == "silu" || activation == "swish",
           "attribute activation: expected none, silu or swish, found {}", activation);
  const std::int64_t kept = l.size(weight, 2) - 1;
  Operand padded = x;
  if (kept > 0)
    padded = l.concat({l.has(3) ? l.in(3) : l.filled({l.dim(x, 0), l.dim(x, 1), kept}, l.dtype(x), 0), x}, 2);
  std::vector<Operand> operands{padded, weight};
  if (l.has(2)) operands.push_back(l.in(2));
  if (l.wants(0))
    l.set(0, l.op(OpKind::conv, operands,
                  {{"group", l.size(weight, 0)},
                   {"activation", std::string(activation == "none" ? "identity" : "silu")}}));
  const std::int64_t length = l.size(padded, 2);
  l.set(1, l.slice(padded, 2, length - kept, length));
}

void lower_swiglu(Lowering& l) {
  const Operand a = l.widened(l.in(0)), b = l.widened(l.in(1));
  const Operand gate = l.op(OpKind::swish, {a}, {{"alpha", l.number("alpha", 1)}});
  l.set(0, l.cast(l.binary(OpKind::mul, gate, b), l.dtype(l.in(0))));
}

void lower_tensor_scatter(Lowering& l) {
  const Operand cache = l.in(0), update = l.in(1);
  const std::string mode = l.text("mode", "linear");
  l.expect(mode == "linear" || mode == "circular", "attribute mode: expected linear or circular, found {}", mode);
  const int axis = l.axis(l.integer("axis", -2), l.rank(cache));
  l.expect(axis > 0, "attribute axis: expected another than that of the batch, found 0");
  l.expect(l.rank(update) == l.rank(cache), "expected an update of {} dimensions, found {}", l.rank(cache),
           l.type(update).to_string());
  Dims lead(l.dims(update).begin(), l.dims(update).begin() + axis + 1);
  lead.push_back(1);
  std::vector<Operand> coordinates;  // of every row that is written: one operand for each axis up to the sequence's
  for (int a = 0; a <= axis; ++a) {
    Ints steps(l.listed(l.size(update, a)));
    std::iota(steps.begin(), steps.end(), 0);
    Dims along(lead.size(), 1);
    along[static_cast<std::size_t>(a)] = static_cast<std::int64_t>(steps.size());
    Operand at = l.reshape(l.ints(steps), along);
    if (a == axis && l.has(2)) {
      Dims first(lead.size(), 1);
      first[0] = lead[0];
      at = l.binary(OpKind::add, at, l.reshape(l.cast(l.in(2), DType::i64), first));
      if (mode == "circular") at = l.binary(OpKind::mod, at, static_cast<double>(l.size(cache, axis)));
    }
    coordinates.push_back(l.expand(at, lead));
  }
  l.set(0, l.op(OpKind::scatter_nd, {cache, l.concat(coordinates, static_cast<int>(lead.size()) - 1), update}));
}

}  // namespace cermet::onnx
