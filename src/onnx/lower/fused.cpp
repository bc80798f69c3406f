// com.microsoft's fusions of matrix products, convolutions and activations.
#include "onnx/lower/fused.hpp"

#include <numeric>

namespace cermet::onnx {

Operand channels_second(Lowering& l, Operand x) {
  l.expect(l.rank(x) >= 3, "expected [batch, .., channels], found {}", l.type(x).to_string());
  return l.move_axis(x, l.rank(x) - 1, 1);
}
Operand channels_last(Lowering& l, Operand x) { return l.move_axis(x, 1, l.rank(x) - 1); }

Operand activated(Lowering& l, Operand x, const Floats& parameters) {
  const std::string name = l.text("activation", "");
  if (name.empty()) return x;
  const auto parameter = [&](std::size_t i, double fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  if (name == "Relu") return l.unary(OpKind::relu, x);
  if (name == "Sigmoid") return l.unary(OpKind::sigmoid, x);
  if (name == "Tanh") return l.unary(OpKind::tanh, x);
  if (name == "Softplus") return l.unary(OpKind::softplus, x);
  if (name == "Softsign") return l.unary(OpKind::softsign, x);
  if (name == "Gelu") return l.unary(OpKind::gelu, x);
  if (name == "HardSwish") return l.unary(OpKind::hard_swish, x);
  if (name == "LeakyRelu") return l.op(OpKind::leaky_relu, {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "Elu") return l.op(OpKind::elu, {x}, {{"alpha", parameter(0, 1)}});
  if (name == "ThresholdedRelu") return l.op(OpKind::thresholded_relu, {x}, {{"alpha", parameter(0, 1)}});
  if (name == "HardSigmoid")
    return l.op(OpKind::hard_sigmoid, {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Selu")
    return l.op(
        OpKind::selu, {x},
        {{"alpha", parameter(0, 1.67326319217681884765625)}, {"gamma", parameter(1, 1.05070102214813232421875)}});
  if (name == "Clip") {
    l.expect(parameters.size() == 2, "attribute activation_params: expected two limits for Clip, found {}",
             parameters.size());
    return l.op(OpKind::clip, {x}, {{"low", parameters[0]}, {"high", parameters[1]}});
  }
  l.unsupported("attribute activation: {} is not supported", name);
}

namespace {

/// With the last two axes exchanged.
Operand last_two_exchanged(Lowering& l, Operand x) {
  Ints permutation(static_cast<std::size_t>(l.rank(x)));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return l.transpose(x, permutation);
}

/// An operand of FusedMatMul: `batch` moves the first axis after those of the batch, `last` exchanges the last two.
Operand arranged(Lowering& l, Operand x, bool batch, bool last) {
  const int rank = l.rank(x);
  if (rank < 2) return x;
  if (batch && rank > 2) x = l.move_axis(x, 0, rank - 2);
  return last ? last_two_exchanged(l, x) : x;
}

/// The node's convolution of x, plus operand 3, and its activation.
Operand fused_convolution(Lowering& l, Operand x, Operand residual) {
  Operand y = convolution(l, x);
  if (residual) y = l.binary(OpKind::add, y, residual);
  return activated(l, y, l.numbers("activation_params"));
}

Floats activation_parameters(Lowering& l) {
  Floats parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (l.has_attribute(name)) parameters.push_back(l.number(name, 0));
  return parameters;
}

}  // namespace

void lower_fused_matmul(Lowering& l) {
  Operand a = arranged(l, l.in(0), l.integer("transBatchA", 0) != 0, l.integer("transA", 0) != 0);
  Operand b = arranged(l, l.in(1), l.integer("transBatchB", 0) != 0, l.integer("transB", 0) != 0);
  const bool row = l.rank(a) == 1, column = l.rank(b) == 1;
  if (row) a = l.unsqueeze(a, {0});
  if (column) b = l.unsqueeze(b, {1});
  Operand y;
  if (l.is_known(b) && l.rank(b) == 2 && dtypes::real.contains(l.dtype(a)))
    y = l.op(OpKind::linear, {a, l.transpose(b, {1, 0})});
  else y = l.op(OpKind::matmul, {a, b});
  if (column) y = l.squeeze(y, {l.rank(y) - 1});
  if (row) y = l.squeeze(y, {l.rank(y) - (column ? 1 : 2)});
  const double alpha = l.number("alpha", 1);
  y = alpha == 1 ? y : l.binary(OpKind::mul, y, alpha);
  l.set(0, activated(l, y, activation_parameters(l)));
}

void lower_fused_gemm(Lowering& l) { l.set(0, activated(l, general_product(l), activation_parameters(l))); }

void lower_fused_conv(Lowering& l) { l.set(0, fused_convolution(l, l.in(0), l.in_or_none(3))); }

/// Operands and result have their channels last, the weight is that of Conv.
void lower_nhwc_conv(Lowering& l) {
  const Operand residual = l.has(3) ? channels_second(l, l.in(3)) : Operand{};
  l.set(0, channels_last(l, fused_convolution(l, channels_second(l, l.in(0)), residual)));
}

void lower_bias_gelu(Lowering& l) { l.set(0, l.unary(OpKind::gelu, l.binary(OpKind::add, l.in(0), l.in(1)))); }

void lower_gelu_ms(Lowering& l) { l.set(0, l.unary(OpKind::gelu, l.in(0))); }

void lower_fast_gelu(Lowering& l) {
  l.set(0, l.unary(OpKind::gelu_tanh, l.has(1) ? l.binary(OpKind::add, l.in(0), l.in(1)) : l.in(0)));
}

void lower_quick_gelu(Lowering& l) {
  l.set(0, l.op(OpKind::swish, {l.in(0)}, {{"alpha", l.number("alpha", 1.7020000219345093)}}));
}

}  // namespace cermet::onnx
