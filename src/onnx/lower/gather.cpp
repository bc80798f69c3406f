// Elements by their indices.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// Our operators take indices of 32 and 64 bits.
Operand indices(Lowering& l, std::size_t i) {
  const Operand x = l.in(i);
  return dtypes::index.contains(l.dtype(x)) ? x : l.cast(x, DType::i64);
}

Attributes axis_attribute(Lowering& l, Operand x) {
  return {{"axis", std::int64_t{l.axis(l.integer("axis", 0), l.rank(x))}}};
}

/// Whether a gather takes every slice, in order: masks of tokens are exported so. A single one is left alone: it may be
/// a size.
bool takes_all_in_order(Lowering& l, Operand x, Operand at) {
  const Dim size = l.dim(x, l.axis(l.integer("axis", 0), l.rank(x)));
  if (l.is_known(x) || !l.is_known(at) || !size.is_constant() || size.constant() < 2 ||
      l.elements(at) != size.constant())
    return false;
  const Ints list = l.ints_in(at);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

void scatter(Lowering& l, OpKind kind) {
  const Operand x = l.in(0);
  std::string reduction = l.text("reduction", "none");
  if (reduction == "add") reduction = "sum";
  if (reduction == "mul") reduction = "prod";
  Attributes attributes{{"reduction", reduction}};
  if (kind == OpKind::scatter) attributes.set("axis", std::int64_t{l.axis(l.integer("axis", 0), l.rank(x))});
  l.set(0, l.op(kind, {x, indices(l, 1), l.in(2)}, attributes));
}

}  // namespace

void lower_gather(Lowering& l) {
  const Operand x = l.in(0), at = indices(l, 1);
  if (takes_all_in_order(l, x, at)) {
    const int axis = l.axis(l.integer("axis", 0), l.rank(x));
    Dims dims(l.dims(x).begin(), l.dims(x).begin() + axis);
    dims.insert(dims.end(), l.dims(at).begin(), l.dims(at).end());
    dims.insert(dims.end(), l.dims(x).begin() + axis + 1, l.dims(x).end());
    return l.set(0, l.reshape(x, dims));
  }
  l.set(0, l.op(OpKind::gather, {x, at}, axis_attribute(l, x)));
}
void lower_gather_elements(Lowering& l) {
  l.set(0, l.op(OpKind::gather_elements, {l.in(0), indices(l, 1)}, axis_attribute(l, l.in(0))));
}
void lower_gather_nd(Lowering& l) {
  l.set(0, l.op(OpKind::gather_nd, {l.in(0), indices(l, 1)}, {{"batch_dims", l.integer("batch_dims", 0)}}));
}
void lower_scatter_elements(Lowering& l) { scatter(l, OpKind::scatter); }
void lower_scatter_nd(Lowering& l) { scatter(l, OpKind::scatter_nd); }

}  // namespace cermet::onnx
