// Activations, and softmax with its relatives.
#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_hard_swish(Lowering& l) { l.set(0, l.unary(OpKind::hard_swish, l.in(0))); }

void lower_leaky_relu(Lowering& l) { l.set(0, l.op(OpKind::leaky_relu, {l.in(0)}, {{"alpha", l.number("alpha", 0.01)}})); }

void lower_elu(Lowering& l) { l.set(0, l.op(OpKind::elu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_hard_sigmoid(Lowering& l) { l.set(0, l.op(OpKind::hard_sigmoid, {l.in(0)}, {{"alpha", l.number("alpha", 0.2)}, {"beta", l.number("beta", 0.5)}})); }

void lower_prelu(Lowering& l) { l.set(0, l.binary(OpKind::prelu, l.in(0), l.in(1))); }

void lower_mish(Lowering& l) { l.set(0, l.unary(OpKind::mish, l.in(0))); }

void lower_celu(Lowering& l) { l.set(0, l.op(OpKind::celu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_thresholded_relu(Lowering& l) { l.set(0, l.op(OpKind::thresholded_relu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_swish(Lowering& l) { l.set(0, l.op(OpKind::swish, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_selu(Lowering& l) {
  l.set(0, l.op(OpKind::selu, {l.in(0)}, {{"alpha", l.number("alpha", 1.67326319217681884765625)}, {"gamma", l.number("gamma", 1.05070102214813232421875)}}));
}

void lower_shrink(Lowering& l) { l.set(0, l.op(OpKind::shrink, {l.in(0)}, {{"lambd", l.number("lambd", 0.5)}, {"bias", l.number("bias", 0)}})); }

void lower_gelu(Lowering& l) {
  const std::string approximate = l.text("approximate", "none");
  l.expect(approximate == "none" || approximate == "tanh", "attribute approximate: expected none or tanh, found '{}'", approximate);
  l.set(0, l.unary(approximate == "tanh" ? OpKind::gelu_tanh : OpKind::gelu, l.in(0)));
}

namespace {

/// Along one axis; before opset 13 along all axes from the given one.
template <class Rows>
void along_axis(Lowering& l, Rows&& rows) {
  const Operand x = l.in(0);
  const int rank = l.rank(x);
  if (rank == 0) return l.set(0, l.reshape(rows(l.reshape(x, {1})), {}));
  const int axis = l.axis(l.integer("axis", l.version() < 13 ? 1 : -1), l.version() < 13 ? rank + 1 : rank);
  if (l.version() >= 13) {
    const Operand last = l.move_axis(x, axis, rank - 1);
    return l.set(0, l.move_axis(rows(last), rank - 1, axis));
  }
  const Dims dims = l.dims(x);
  if (axis == rank - 1) return l.set(0, rows(x));
  const Dims flat{product({dims.begin(), dims.begin() + axis}), product({dims.begin() + axis, dims.end()})};
  l.set(0, l.reshape(rows(l.reshape(x, flat)), dims));
}

}  // namespace

void lower_softmax(Lowering& l) {
  along_axis(l, [&](Operand x) { return l.unary(OpKind::softmax, x); });
}

void lower_log_softmax(Lowering& l) {
  along_axis(l, [&](Operand x) { return l.op(OpKind::softmax, {x}, {{"log", true}}); });
}

/// 1 at the first largest element.
void lower_hardmax(Lowering& l) {
  along_axis(l, [&](Operand x) {
    const std::int64_t n = l.size(x, -1);
    Ints positions(l.listed(n));
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
    const Operand best = l.unsqueeze(l.op(OpKind::argmax, {x}, {{"out_dtype", "i64"}}), {l.rank(x) - 1});
    return l.cast(l.binary(OpKind::equal, best, l.ints(positions)), l.dtype(x));
  });
}

}  // namespace cermet::onnx
