#include "op/activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr std::array<std::string_view, 7> names{"identity", "relu", "sigmoid", "silu", "gelu", "gelu_tanh", "gelu_quick"};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::span<const std::string_view> activation_names() { return names; }

Activation activation_from_name(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  CERMET_ASSERT(found != names.end());
  return static_cast<Activation>(found - names.begin());
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::identity: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::sigmoid: return sigmoid(x);
    case Activation::silu: return x * sigmoid(x);
    case Activation::gelu: return x * std::erfc(-x * 0.70710678118654752) / 2;
    case Activation::gelu_tanh: return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
    case Activation::gelu_quick: return x * sigmoid(1.702 * x);
  }
  return x;
}

}  // namespace cermet
