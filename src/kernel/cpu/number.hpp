// Single elements of the real types as float32, for loops that are not vectorised.
#pragma once

#include <type_traits>

#include "format/half.hpp"

namespace cermet::cpu {

inline float to_number(float x) { return x; }
inline float to_number(format::bf16 x) { return format::to_float(x); }
inline float to_number(format::f16 x) { return format::to_float(x); }

template <class T>
T from_number(float x) {
  if constexpr (std::is_same_v<T, float>) return x;
  else if constexpr (std::is_same_v<T, format::bf16>) return format::to_bf16(x);
  else return format::to_f16(x);
}

}  // namespace cermet::cpu
