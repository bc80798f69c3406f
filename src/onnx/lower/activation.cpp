// Activations, and softmax with its relatives.
#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_hard_swish(Lowering& l) { l.set(0, l.unary(OpKind::hard_swish, l.in(0))); }

void lower_leaky_relu(Lowering& l) {
  l.set(0, l.op(OpKind::leaky_relu, {l.in(0)}, {{"alpha", l.number("alpha", 0.01)}}));
}

void lower_elu(Lowering& l) { l.set(0, l.op(OpKind::elu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_hard_sigmoid(Lowering& l) {
  l.set(0, l.op(OpKind::hard_sigmoid, {l.in(0)}, {{"alpha", l.number("alpha", 0.2)}, {"beta", l.number("beta", 0.5)}}));
}

/// Before opset 7 a vector of slopes is one of channels.
void lower_prelu(Lowering& l) {
  const Operand x = l.in(0);
  Operand slope = l.in(1);
  if (l.version() < 7 && l.rank(slope) == 1 && l.rank(x) > 2 && l.dim(slope, 0) != Dim(1)) {
    Dims channels(static_cast<std::size_t>(l.rank(x)) - 1, 1);
    channels[0] = l.dim(slope, 0);
    slope = l.reshape(slope, channels);
  }
  l.set(0, l.binary(OpKind::prelu, x, slope));
}

void lower_mish(Lowering& l) { l.set(0, l.unary(OpKind::mish, l.in(0))); }

void lower_celu(Lowering& l) { l.set(0, l.op(OpKind::celu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_thresholded_relu(Lowering& l) {
  l.set(0, l.op(OpKind::thresholded_relu, {l.in(0)}, {{"alpha", l.number("alpha", 1)}}));
}

void lower_swish(Lowering& l) { l.set(0, l.op(OpKind::swish, {l.in(0)}, {{"alpha", l.number("alpha", 1)}})); }

void lower_selu(Lowering& l) {
  const bool old = l.version() < 6;  // which had fewer digits
  const double alpha = l.number("alpha", old ? 1.6732 : 1.67326319217681884765625),
               gamma = l.number("gamma", old ? 1.0507 : 1.05070102214813232421875);
  l.set(0, l.op(OpKind::selu, {l.in(0)}, {{"alpha", alpha}, {"gamma", gamma}}));
}

void lower_shrink(Lowering& l) {
  l.set(0, l.op(OpKind::shrink, {l.in(0)}, {{"lambd", l.number("lambd", 0.5)}, {"bias", l.number("bias", 0)}}));
}

void lower_gelu(Lowering& l) {
  const std::string approximate = l.text("approximate", "none");
  l.expect(approximate == "none" || approximate == "tanh", "attribute approximate: expected none or tanh, found '{}'",
           approximate);
  l.set(0, l.unary(approximate == "tanh" ? OpKind::gelu_tanh : OpKind::gelu, l.in(0)));
}

namespace {

/// Along one axis; before opset 13 along all axes from the given one, or along none where that is the rank.
template <class Rows>
void along_axis(Lowering& l, Rows&& rows) {
  const Operand x = l.in(0);
  const int rank = l.rank(x);
  if (rank == 0) return l.set(0, l.reshape(rows(l.reshape(x, {1})), {}));
  if (product(l.dims(x)) == Dim(0)) return l.set(0, x);  // rows of no element
  const std::int64_t given = l.integer("axis", l.version() < 13 ? 1 : -1);
  const int axis = l.version() < 13 && given == rank ? rank : l.axis(given, rank);
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
