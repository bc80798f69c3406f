// Operators on dimensions.
#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_constant(Lowering& l) {
  if (const Tensor* value = l.tensor("value")) {
    const Operand constant = l.constant(value->data());
    if (value->bits()) l.note_bits(constant, value->bits());
    return l.set(0, constant);
  }
  if (l.has_attribute("value_int"))
    return l.set(0, l.constant(TensorData::of({DType::i64, {}}, Ints{l.integer("value_int", 0)})));
  if (l.has_attribute("value_ints")) return l.set(0, l.ints(l.integers("value_ints")));
  if (l.has_attribute("value_float")) return l.set(0, l.scalar(DType::f32, l.number("value_float", 0)));
  if (l.has_attribute("value_floats")) return l.set(0, l.vector(DType::f32, l.numbers("value_floats")));
  for (const char* name : {"value_string", "value_strings"})
    if (l.has_attribute(name)) l.unsupported("attribute {}: strings are not supported", name);
  l.unsupported("expected a tensor or numbers, found a sparse tensor or nothing");
}

void lower_shape(Lowering& l) {
  const Dims dims = l.dims(l.in(0));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto clamped = [&](std::int64_t at) { return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank); };
  const std::int64_t start = clamped(l.integer("start", 0)), end = clamped(l.integer("end", rank));
  l.set(0, l.shape_value(start < end ? Dims(dims.begin() + start, dims.begin() + end) : Dims()));
}

void lower_size(Lowering& l) { l.set(0, l.shape_value({product(l.dims(l.in(0)))}, true)); }

namespace {

std::optional<Ints> squeezed_axes(Lowering& l, std::int64_t operand_since) {
  if (l.version() >= operand_since) return l.has(1) ? std::optional(l.ints_in(l.in(1))) : std::nullopt;
  return l.has_attribute("axes") ? std::optional(l.integers("axes")) : std::nullopt;
}

}  // namespace

void lower_squeeze(Lowering& l) {
  const Operand x = l.in(0);
  const std::optional<Ints> axes = squeezed_axes(l, 13);
  if (axes) return l.set(0, l.squeeze(x, *axes));
  Ints ones;
  for (int a = 0; a < l.rank(x); ++a)
    if (l.equals(l.dim(x, a), 1)) ones.push_back(a);
  l.set(0, l.squeeze(x, ones));
}

void lower_unsqueeze(Lowering& l) {
  const std::optional<Ints> axes = squeezed_axes(l, 13);
  l.expect(axes.has_value(), "axes: expected some, found none");
  l.set(0, l.unsqueeze(l.in(0), *axes));
}

void lower_expand(Lowering& l) { l.set(0, l.expand(l.in(0), l.dims_in(l.in(1)))); }

}  // namespace cermet::onnx
