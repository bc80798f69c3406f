#include "op/activation.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "op/pointwise_math.hpp"

namespace cermet {
namespace {

constexpr std::string_view names[] = {
#define ACTIVATION(name, expression) #name,
#include "op/activation.inc"
#undef ACTIVATION
};

}  // namespace

std::span<const std::string_view> activation_names() { return names; }

Activation activation_from_name(std::string_view name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  CERMET_ASSERT(found != std::end(names));
  return static_cast<Activation>(found - std::begin(names));
}

double activate(Activation activation, double x) {
  switch (activation) {
#define ACTIVATION(name, expression) \
  case Activation::name:             \
    return expression;
#include "op/activation.inc"
#undef ACTIVATION
  }
  return x;
}

}  // namespace cermet
