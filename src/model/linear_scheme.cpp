#include "model/linear_scheme.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace cermet {
namespace {

using Weight = LinearScheme::Weight;
using Input = LinearScheme::Input;

constexpr std::array<std::pair<std::string_view, LinearScheme>, 7> names{{
    {"16bit", {Weight::real, Input::real}},
    {"w8a16", {Weight::int8, Input::real}},
    {"w8a8_dynamic", {Weight::int8, Input::dynamic}},
    {"w8a8_static", {Weight::int8, Input::fixed}},
    {"fp8_weight_only", {Weight::fp8, Input::real}},
    {"fp8_dynamic", {Weight::fp8, Input::dynamic}},
    {"fp8_static", {Weight::fp8, Input::fixed}},
}};

}  // namespace

std::string_view name_of(const LinearScheme& scheme) {
  for (const auto& [name, known] : names)
    if (known == scheme) return name;
  CERMET_ASSERT(false);  // an unquantized weight with a quantized input is not a scheme
  return {};
}

std::optional<LinearScheme> scheme_named(std::string_view name) {
  for (const auto& [known, scheme] : names)
    if (known == name) return scheme;
  return std::nullopt;
}

}  // namespace cermet
