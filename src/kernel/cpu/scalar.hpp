// One real element as float32 and back, for loops without vectors.
#pragma once

#include "format/half.hpp"

namespace cermet::cpu {

inline float load_float(float x) { return x; }
inline float load_float(format::bf16 x) { return format::to_float(x); }
inline float load_float(format::f16 x) { return format::to_float(x); }
/// Rounds to nearest even.
inline void store_float(float& to, float x) { to = x; }
inline void store_float(format::bf16& to, float x) { to = format::to_bf16(x); }
inline void store_float(format::f16& to, float x) { to = format::to_f16(x); }

}  // namespace cermet::cpu
