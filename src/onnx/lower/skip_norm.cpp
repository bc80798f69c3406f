// com.microsoft's normalizations: of sums of values, and of sums of embeddings.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

struct NormParameters {
  Operand scale, bias;  ///< bias: none where there is none
  bool centred;         ///< layer norm; else RMS norm
  double eps;
};

/// Sets result 0, and results `mean` and `inverse` where they are wanted.
void normalize(Lowering& l, Operand x, const NormParameters& p, std::size_t mean, std::size_t inverse) {
  std::vector<Operand> operands{x, p.scale};
  if (p.bias) operands.push_back(p.bias);
  l.set(0, l.op(p.centred ? OpKind::layer_norm : OpKind::rms_norm, operands, {{"eps", p.eps}}));
  if (!l.wants(mean) && !l.wants(inverse)) return;
  Operand wide = l.cast(x, DType::f32);
  const int last = l.rank(x) - 1;
  const Operand middle = l.reduce(OpKind::reduce_mean, wide, {last}, true);
  l.set(mean, middle);
  if (p.centred) wide = l.binary(OpKind::sub, wide, middle);
  const Operand variance = l.reduce(OpKind::reduce_mean, l.unary(OpKind::square, wide), {last}, true);
  l.set(inverse, l.unary(OpKind::reciprocal, l.unary(OpKind::sqrt, l.binary(OpKind::add, variance, p.eps))));
}

/// Operands x, skip, scale, and then those from `bias_at`: result 3 is the sum.
void normalize_sum(Lowering& l, const NormParameters& p, std::size_t bias_at) {
  const Operand x = l.in(0), skip = l.in(1);
  l.expect(l.rank(x) >= 1 && l.rank(skip) <= l.rank(x), "skip: expected at most the {} dimensions of input, found {}",
           l.rank(x), l.type(skip).to_string());
  Operand sum = l.binary(OpKind::add, x, skip);
  if (l.has(bias_at)) sum = l.binary(OpKind::add, sum, l.in(bias_at));
  normalize(l, sum, p, 1, 2);
  l.set(3, sum);
}

/// 0, 1, .. in each row, as many as ids has; of sizes that are symbols, too.
Operand positions_like(Lowering& l, Operand ids) {
  const Operand ones = l.cast(l.binary(OpKind::equal, ids, ids), DType::i64);
  return l.binary(OpKind::sub, l.op(OpKind::cumsum, {ones}, {{"axis", std::int64_t{1}}}), 1.0);
}

Operand rows_of_table(Lowering& l, Operand table, Operand ids) {
  return l.op(OpKind::gather, {table, dtypes::index.contains(l.dtype(ids)) ? ids : l.cast(ids, DType::i64)},
              {{"axis", std::int64_t{0}}});
}

}  // namespace

void lower_skip_layer_normalization(Lowering& l) {
  normalize_sum(l, {l.in(2), l.in_or_none(3), true, l.number("epsilon", 1e-12)}, 4);
}

void lower_skip_simplified_layer_normalization(Lowering& l) {
  normalize_sum(l, {l.in(2), {}, false, l.number("epsilon", 1e-12)}, 3);
}

/// RMSNormalization under its name in ONNX Runtime, with a second result.
void lower_simplified_layer_normalization(Lowering& l) {
  const Operand x = l.in(0), scale = l.in(1);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  const double eps = l.number("epsilon", 1e-5);
  const Operand wide = l.widened(x);
  Ints axes;
  for (int a = axis; a < rank; ++a) axes.push_back(a);
  const auto inverse = [&] {
    const Operand mean = l.reduce(OpKind::reduce_mean, l.unary(OpKind::square, wide), axes, true);
    return l.unary(OpKind::reciprocal, l.unary(OpKind::sqrt, l.binary(OpKind::add, mean, eps)));
  };
  const Dims dims = l.dims(x), tail(dims.begin() + axis, dims.end());
  if (l.dims(scale) == tail && dtypes::real.contains(l.dtype(x)) && dtypes::real.contains(l.dtype(scale)))
    l.set(0, l.op(OpKind::rms_norm, {x, scale}, {{"eps", eps}, {"out_dtype", std::string(name_of(l.dtype(scale)))}}));
  else
    l.set(0, l.cast(l.binary(OpKind::mul, l.binary(OpKind::mul, wide, inverse()), l.cast(scale, l.dtype(wide))),
                    l.dtype(scale)));
  if (l.wants(1)) l.set(1, inverse());
}

namespace {

/// Embeddings of words, positions and segments, of tables or of what `values` makes of them; operands in the order of
/// both operators.
template <class Rows>
void embed(Lowering& l, Operand positions, Operand scale, Operand bias, Rows&& rows) {
  const Operand ids = l.in(0);
  l.expect(l.rank(ids) == 2, "input_ids: expected [batch, sequence], found {}", l.type(ids).to_string());
  l.expect(l.has(1) == l.has(4), "expected segment_ids and segment_embedding together, found one");
  Operand sum = l.binary(OpKind::add, rows(2, ids), rows(3, positions ? positions : positions_like(l, ids)));
  if (l.has(1)) sum = l.binary(OpKind::add, sum, rows(4, l.in(1)));
  l.set(0, l.op(OpKind::layer_norm, {sum, scale, bias}, {{"eps", l.number("epsilon", 1e-12)}}));
  if (l.wants(1)) {  // how many tokens of each sequence the mask keeps; 0 without a mask
    const Operand kept = l.has(7) ? l.binary(OpKind::equal, l.in(7), 1.0) : l.binary(OpKind::not_equal, ids, ids);
    l.set(1, l.reduce(OpKind::reduce_sum, l.cast(kept, DType::i32), {1}, false));
  }
  l.set(2, sum);
}

/// A table's values, or rows of it, of the scale and the zero point in two operands.
Operand table_values(Lowering& l, Operand x, std::size_t scale, std::size_t zero) {
  return l.op(OpKind::dequantize, {x, l.reshape(l.in(scale), {}), l.reshape(l.in(zero), {})},
              {{"granularity", "broadcast"}});
}

}  // namespace

void lower_embed_layer_normalization(Lowering& l) {
  embed(l, l.in_or_none(8), l.in(5), l.in(6),
        [&](std::size_t table, Operand ids) { return rows_of_table(l, l.in(table), ids); });
}

/// Scales of operands 2 to 6 begin with operand 8, zero points with operand 13.
void lower_qembed_layer_normalization(Lowering& l) {
  embed(l, {}, table_values(l, l.in(5), 11, 16), table_values(l, l.in(6), 12, 17), [&](std::size_t table, Operand ids) {
    return table_values(l, rows_of_table(l, l.in(table), ids), table + 6, table + 11);
  });
}

}  // namespace cermet::onnx
