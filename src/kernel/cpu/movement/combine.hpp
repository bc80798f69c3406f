// How an update meets the element that is there: for the kernels of scatter and scatter_nd.
#pragma once

#include <cmath>
#include <optional>
#include <type_traits>

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

/// Calls body(T{}) with the type of elements that accumulate as they are stored: all that reductions take but bf16 and f16.
template <class Body>
void by_accumulating_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body(float{});
    case DType::f64: return body(double{});
    case DType::boolean:
    case DType::u8: return body(std::uint8_t{});
    case DType::i8: return body(std::int8_t{});
    case DType::u16: return body(std::uint16_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::u32: return body(std::uint32_t{});
    case DType::i32: return body(std::int32_t{});
    case DType::u64: return body(std::uint64_t{});
    default: return body(std::int64_t{});
  }
}

/// The attribute of both operators; nothing where updates replace. Booleans are combined as bytes of 0 and 1.
inline std::optional<Reduction> update_reduction(const Problem& p) {
  const std::string& name = p.attributes.text("reduction");
  if (name == "none") return std::nullopt;
  const Reduction kind = reduction_from_name(name);
  return p.input(0).dtype == DType::boolean ? boolean_reduction(kind) : kind;
}

}  // namespace cermet::cpu
