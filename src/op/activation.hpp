// Activation functions that a product may apply to its result before storing it.
#pragma once

#include <span>
#include <string_view>

namespace cermet {

enum class Activation { identity, relu, sigmoid, silu, gelu, gelu_tanh, gelu_quick };

/// Names in the enumeration's order, as attributes spell them.
std::span<const std::string_view> activation_names();
/// By name; asserts that it is one of activation_names().
Activation activation_from_name(std::string_view name);
/// relu: max(x, 0); sigmoid: 1 / (1 + exp(-x)); silu: x * sigmoid(x); gelu: x * (1 + erf(x / sqrt 2)) / 2;
/// gelu_tanh: x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)); gelu_quick: x * sigmoid(1.702 x).
double activate(Activation activation, double x);

}  // namespace cermet
