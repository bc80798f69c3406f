// ai.onnx.ml's LabelEncoder from numbers to numbers.
#include <cmath>
#include <map>

#include "onnx/lower/scores.hpp"

namespace cermet::onnx {
namespace {

/// The list of numbers that attributes PREFIX_tensor, PREFIX_int64s or PREFIX_floats have, [count]; none where there is
/// none.
Operand listed_numbers(Lowering& l, const std::string& prefix) {
  if (!l.texts(prefix + "_strings").empty())
    l.unsupported("attribute {}_strings: strings are not supported; numbers are", prefix);
  if (const Tensor* tensor = l.tensor(prefix + "_tensor")) {
    const Operand all = l.constant(tensor->data());
    return l.reshape(all, {product(l.dims(all))});
  }
  if (l.has_attribute(prefix + "_int64s")) return l.ints(l.integers(prefix + "_int64s"));
  if (l.has_attribute(prefix + "_floats")) return l.vector(DType::f32, l.numbers(prefix + "_floats"));
  return {};
}

Operand default_value(Lowering& l, DType t) {
  if (const Tensor* tensor = l.tensor("default_tensor")) return l.reshape(l.constant(tensor->data()), {});
  if (is_integer(t)) return l.cast(l.reshape(l.ints({l.integer("default_int64", -1)}), {}), t);
  return l.scalar(t, l.number("default_float", -0.0));
}

/// Positions whose key no later position has: the last of equal keys counts.
Ints last_positions(Lowering& l, Operand keys) {
  const Floats values = l.numbers_in(keys);
  std::map<std::pair<bool, double>, std::int64_t> last;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool nan = std::isnan(values[i]);
    last[{nan, nan ? 0 : values[i]}] = static_cast<std::int64_t>(i);
  }
  Ints positions;
  for (const auto& [key, position] : last) positions.push_back(position);
  return positions;
}

}  // namespace

void lower_label_encoder(Lowering& l) {
  if (l.has_attribute("classes_strings")) refuse_strings(l, "classes_strings");
  const Operand x = l.in(0);
  Operand keys = listed_numbers(l, "keys"), values = listed_numbers(l, "values");
  l.expect(keys && values, "expected attributes keys_* and values_*, found {}", keys ? "no values" : "no keys");
  l.expect(l.dims(keys) == l.dims(values), "attributes keys_* and values_*: expected equal lengths, found {} and {}",
           l.type(keys).to_string(), l.type(values).to_string());
  l.expect(l.dtype(keys) == l.dtype(x), "attribute keys_*: expected {} as the operand, found {}", name_of(l.dtype(x)),
           name_of(l.dtype(keys)));
  if (l.elements(keys) == 0) return l.set(0, l.expand(default_value(l, l.dtype(values)), l.dims(x)));
  const Operand kept = l.ints(last_positions(l, keys));
  keys = l.op(OpKind::gather, {keys, kept}, {{"axis", std::int64_t{0}}});
  values = l.op(OpKind::gather, {values, kept}, {{"axis", std::int64_t{0}}});
  const Operand each = l.unsqueeze(x, {l.rank(x)});  // [.., 1]
  Operand same = l.binary(OpKind::equal, each, keys);
  if (is_floating(l.dtype(x)))
    same = l.binary(OpKind::logical_or, same,
                    l.binary(OpKind::logical_and, l.binary(OpKind::not_equal, each, each),
                             l.binary(OpKind::not_equal, keys, keys)));
  const Operand hits = l.cast(same, DType::i32);
  const Operand value = l.op(OpKind::gather, {values, l.op(OpKind::argmax, {hits})}, {{"axis", std::int64_t{0}}});
  const Operand found = l.binary(OpKind::greater, l.reduce(OpKind::reduce_max, hits, {l.rank(x)}, false), 0.0);
  l.set(0, l.op(OpKind::where, {found, value, default_value(l, l.dtype(values))}));
}

}  // namespace cermet::onnx
