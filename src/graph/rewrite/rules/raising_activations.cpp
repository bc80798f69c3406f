// Activations that exporters write out, put together again. Numbers are those of the formulas, to the precision that
// exporters keep.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

Attributes with_alpha(const Match& m) { return {{"alpha", m.scalar("c")}}; }
Attributes hard_sigmoid_of_six(const Match&) { return {{"alpha", 1.0 / 6}, {"beta", 0.5}}; }
bool gates_with_sixth(const Match& m) {
  const Attributes a = m.attributes(0);
  return is_number(a.number("alpha"), 1.0 / 6, DType::f32) && a.number("beta") == 0.5;
}
bool halves_rows(const Match& m) {
  const int rank = m.type("x").rank();
  const std::int64_t axis = m.attributes(0).integer("axis");
  return (axis == -1 || axis == rank - 1) && m.type("g") == m.type("u");
}
Attributes gate_first(const Match&) { return {}; }
Attributes gate_second(const Match&) { return {{"gate", "second"}}; }

constexpr AlgebraRow activation_rows[] = {
    // GELU with the error function: x, 1 + erf(x / sqrt(2)) and 1/2 in every order.
    {"gelu-div", strict, "mul(mul(x, add(erf(div(x, 1.4142135623730951)), 1)), 0.5) -> gelu(x)"},
    {"gelu-div-half-x", strict, "mul(mul(x, 0.5), add(erf(div(x, 1.4142135623730951)), 1)) -> gelu(x)"},
    {"gelu-div-half-erf", strict, "mul(x, mul(add(erf(div(x, 1.4142135623730951)), 1), 0.5)) -> gelu(x)"},
    {"gelu-div-by-two", strict, "div(mul(x, add(erf(div(x, 1.4142135623730951)), 1)), 2) -> gelu(x)"},
    {"gelu-mul", strict, "mul(mul(x, add(erf(mul(x, 0.7071067811865476)), 1)), 0.5) -> gelu(x)"},
    {"gelu-mul-half-x", strict, "mul(mul(x, 0.5), add(erf(mul(x, 0.7071067811865476)), 1)) -> gelu(x)"},
    {"gelu-mul-half-erf", strict, "mul(x, mul(add(erf(mul(x, 0.7071067811865476)), 1), 0.5)) -> gelu(x)"},
    {"gelu-mul-by-two", strict, "div(mul(x, add(erf(mul(x, 0.7071067811865476)), 1)), 2) -> gelu(x)"},
    {"gelu-cdf-div", strict, "mul(x, add(mul(erf(div(x, 1.4142135623730951)), 0.5), 0.5)) -> gelu(x)"},
    {"gelu-cdf-mul", strict, "mul(x, add(mul(erf(mul(x, 0.7071067811865476)), 0.5), 0.5)) -> gelu(x)"},
    // GELU with tanh. pow(x, 3) and x * x * x have become mul(square(x), x).
    {"gelu-tanh", strict,
     "mul(mul(x, add(tanh(mul(add(x, mul(mul(square(x), x), 0.044715)), 0.7978845608028654)), 1)), 0.5) -> "
     "gelu_tanh(x)"},
    {"gelu-tanh-half-x", strict,
     "mul(mul(x, 0.5), add(tanh(mul(add(x, mul(mul(square(x), x), 0.044715)), 0.7978845608028654)), 1)) -> "
     "gelu_tanh(x)"},
    {"gelu-tanh-half-tanh", strict,
     "mul(x, mul(add(tanh(mul(add(x, mul(mul(square(x), x), 0.044715)), 0.7978845608028654)), 1), 0.5)) -> "
     "gelu_tanh(x)"},
    {"gelu-tanh-factored", strict,
     "mul(mul(x, 0.5), add(tanh(mul(mul(x, 0.7978845608028654), add(mul(mul(x, 0.044715), x), 1))), 1)) -> "
     "gelu_tanh(x)"},
    {"gelu-tanh-factored-square", strict,
     "mul(mul(x, 0.5), add(tanh(mul(mul(x, 0.7978845608028654), add(mul(square(x), 0.044715), 1))), 1)) -> "
     "gelu_tanh(x)"},
    {"gelu-tanh-factored-last", strict,
     "mul(mul(x, 0.5), add(tanh(mul(mul(x, add(mul(square(x), 0.044715), 1)), 0.7978845608028654)), 1)) -> "
     "gelu_tanh(x)"},
    {"gelu-quick", strict, "mul(x, sigmoid(mul(x, 1.702))) -> gelu_quick(x)"},
    // Sigmoid and what it gates.
    {"sigmoid-reciprocal", strict, "reciprocal(add(exp(neg(x)), 1)) -> sigmoid(x)"},
    {"sigmoid-div", strict, "div(1, add(exp(neg(x)), 1)) -> sigmoid(x)"},
    {"silu", strict, "mul(x, sigmoid(x)) -> silu(x)"},
    {"silu-div", strict, "div(x, add(exp(neg(x)), 1)) -> silu(x)"},
    {"swish", strict, "mul(x, sigmoid(mul(x, c#))) -> swish(x)", "finite c; c != 1.702; c != 0", nullptr, with_alpha},
    {"swiglu", strict, "g, u = split(x); y = mul(silu(g), u) -> y = silu_and_mul(x)", "(halves of a row)", halves_rows,
     gate_first},
    {"swiglu-second", strict, "u, g = split(x); y = mul(silu(g), u) -> y = silu_and_mul(x)", "(halves of a row)",
     halves_rows, gate_second},
    {"geglu", strict, "g, u = split(x); y = mul(gelu(g), u) -> y = gelu_and_mul(x)", "(halves of a row)", halves_rows,
     gate_first},
    {"geglu-second", strict, "u, g = split(x); y = mul(gelu(g), u) -> y = gelu_and_mul(x)", "(halves of a row)",
     halves_rows, gate_second},
    {"geglu-tanh", strict, "g, u = split(x); y = mul(gelu_tanh(g), u) -> y = gelu_and_mul(x) {approximate = \"tanh\"}",
     "(halves of a row)", halves_rows},
    // Softplus and what is made of it.
    {"softplus", fast, "log(add(exp(x), 1)) -> softplus(x)"},
    {"mish", strict, "mul(x, tanh(softplus(x))) -> mish(x)"},
    {"softsign", strict, "div(x, add(abs(x), 1)) -> softsign(x)"},
    // Piecewise linear ones.
    {"hard-sigmoid", strict, "div(clip(add(x, 3)) {low = 0.0, high = 6.0}, 6) -> hard_sigmoid(x)", "", nullptr,
     hard_sigmoid_of_six},
    {"hard-sigmoid-mul", strict, "mul(clip(add(x, 3)) {low = 0.0, high = 6.0}, 0.16666666666666666) -> hard_sigmoid(x)",
     "", nullptr, hard_sigmoid_of_six},
    {"hard-swish", strict, "mul(x, hard_sigmoid(x)) -> hard_swish(x)", "(slope 1/6, offset 1/2)", gates_with_sixth},
    {"hard-swish-div", strict, "div(mul(x, clip(add(x, 3)) {low = 0.0, high = 6.0}), 6) -> hard_swish(x)"},
    {"hard-swish-mul", strict,
     "mul(mul(x, clip(add(x, 3)) {low = 0.0, high = 6.0}), 0.16666666666666666) -> hard_swish(x)"},
    {"leaky-relu-max", strict, "max(x, mul(x, c#)) -> leaky_relu(x)", "c > 0; c <= 1", nullptr, with_alpha},
    {"leaky-relu-less", strict, "where(less(x, 0), mul(x, c#), x) -> leaky_relu(x)", "finite c", nullptr, with_alpha},
    {"leaky-relu-greater", strict, "where(greater(x, 0), x, mul(x, c#)) -> leaky_relu(x)", "finite c; c > 0", nullptr,
     with_alpha},
    {"leaky-relu-greater-equal", strict, "where(greater_equal(x, 0), x, mul(x, c#)) -> leaky_relu(x)",
     "finite c; c != 0", nullptr, with_alpha},
    {"elu-greater", strict, "where(greater(x, 0), x, sub(exp(x), 1)) -> elu(x)"},
    {"elu-less", strict, "where(less(x, 0), sub(exp(x), 1), x) -> elu(x)"},
    {"relu-choice", fast, "where(less(x, 0), 0, x) -> relu(x)"},
};

}  // namespace

std::span<const AlgebraRow> activation_rules() { return activation_rows; }

}  // namespace cermet
