// Activation functions that a product may apply to its result before storing it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cermet {

enum class Activation : std::uint8_t {
#define ACTIVATION(name, expression) name,
#include "op/activation.inc"
#undef ACTIVATION
};

/// Names in the enumeration's order, as attributes spell them.
std::span<const std::string_view> activation_names();
/// By name; asserts that it is one of activation_names().
Activation activation_from_name(std::string_view name);
double activate(Activation activation, double x);

}  // namespace cermet
