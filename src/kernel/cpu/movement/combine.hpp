// How an update meets the element that is there: for the kernels of scatter and scatter_nd.
#pragma once

#include <cmath>
#include <optional>
#include <type_traits>

#include "kernel/cpu/by_any_dtype.hpp"
#include "op/scatter_updates.hpp"

namespace cermet::cpu {

/// NaN stays in maxima and minima.
template <class T>
T combined(Reduction kind, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (kind) {
      case Reduction::prod: return a * b;
      case Reduction::max: return a > b || std::isnan(a) ? a : b;
      case Reduction::min: return a < b || std::isnan(a) ? a : b;
      default: return a + b;
    }
  } else {
    return combined_integers(kind, a, b);
  }
}

/// Calls body(T{}) with the type of elements that accumulate as they are stored: all that reductions take but bf16 and
/// f16.
template <class Body>
void by_accumulating_dtype(DType dtype, Body&& body) {
  by_number_dtype(dtype, [&](auto zero) {
    if constexpr (std::is_arithmetic_v<decltype(zero)>) body(zero);
  });
}

/// The attribute of both operators; nothing where updates replace. Booleans are combined as bytes of 0 and 1.
inline std::optional<Reduction> update_reduction(const Problem& p) {
  const std::string& name = p.attributes.text("reduction");
  if (name == "none") return std::nullopt;
  const Reduction kind = reduction_from_name(name);
  return p.input(0).dtype == DType::boolean ? boolean_reduction(kind) : kind;
}

}  // namespace cermet::cpu
