// 64-bit integers whose arithmetic is defined for every operand: sums and products wrap, a quotient by zero is zero.
// Narrower types are computed in them, and keep the low bits of the result. Readable by host and device compilers.
#pragma once

#include "format/half.hpp"

#if defined(__CUDACC_RTC__)
using cermet_i64 = long long;
using cermet_u64 = unsigned long long;
#else
using cermet_i64 = std::int64_t;
using cermet_u64 = std::uint64_t;
#endif

namespace cermet {

/// Of unsigned types.
struct Natural {
  cermet_u64 value;

  CERMET_HOST_DEVICE constexpr Natural(cermet_u64 v)
      : value(v) {}  // NOLINT(google-explicit-constructor): reads like a number
  friend CERMET_HOST_DEVICE Natural operator+(Natural a, Natural b) { return a.value + b.value; }
  friend CERMET_HOST_DEVICE Natural operator-(Natural a, Natural b) { return a.value - b.value; }
  friend CERMET_HOST_DEVICE Natural operator*(Natural a, Natural b) { return a.value * b.value; }
  friend CERMET_HOST_DEVICE Natural operator/(Natural a, Natural b) { return b.value == 0 ? 0 : a.value / b.value; }
  friend CERMET_HOST_DEVICE Natural operator-(Natural a) { return 0 - a.value; }
  friend CERMET_HOST_DEVICE Natural operator&(Natural a, Natural b) { return a.value & b.value; }
  friend CERMET_HOST_DEVICE Natural operator|(Natural a, Natural b) { return a.value | b.value; }
  friend CERMET_HOST_DEVICE Natural operator^(Natural a, Natural b) { return a.value ^ b.value; }
  friend CERMET_HOST_DEVICE Natural operator~(Natural a) { return ~a.value; }
  friend CERMET_HOST_DEVICE Natural operator<<(Natural a, Natural b) { return b.value < 64 ? a.value << b.value : 0; }
  friend CERMET_HOST_DEVICE Natural operator>>(Natural a, Natural b) { return b.value < 64 ? a.value >> b.value : 0; }
  friend CERMET_HOST_DEVICE bool operator<(Natural a, Natural b) { return a.value < b.value; }
  friend CERMET_HOST_DEVICE bool operator<=(Natural a, Natural b) { return a.value <= b.value; }
  friend CERMET_HOST_DEVICE bool operator>(Natural a, Natural b) { return a.value > b.value; }
  friend CERMET_HOST_DEVICE bool operator>=(Natural a, Natural b) { return a.value >= b.value; }
  friend CERMET_HOST_DEVICE bool operator==(Natural a, Natural b) { return a.value == b.value; }
  friend CERMET_HOST_DEVICE bool operator!=(Natural a, Natural b) { return a.value != b.value; }
};

CERMET_HOST_DEVICE inline Natural abs(Natural x) { return x; }
CERMET_HOST_DEVICE inline Natural maximum(Natural a, Natural b) { return a > b ? a : b; }
CERMET_HOST_DEVICE inline Natural minimum(Natural a, Natural b) { return a < b ? a : b; }
CERMET_HOST_DEVICE inline Natural select(bool condition, Natural yes, Natural no) { return condition ? yes : no; }
CERMET_HOST_DEVICE inline Natural floor_mod(Natural a, Natural b) { return b == 0 ? b : Natural(a.value % b.value); }
CERMET_HOST_DEVICE inline Natural trunc_mod(Natural a, Natural b) { return floor_mod(a, b); }
CERMET_HOST_DEVICE inline Natural pow(Natural a, Natural b) {
  Natural result = 1;
  for (; b > 0; b = b >> 1, a = a * a)
    if (b.value & 1u) result = result * a;
  return result;
}

/// Of signed types. Booleans are 0 and 1.
struct Integer {
  cermet_i64 value;

  CERMET_HOST_DEVICE constexpr Integer(cermet_i64 v)
      : value(v) {}  // NOLINT(google-explicit-constructor): reads like a number
  static CERMET_HOST_DEVICE Integer wrap(Natural bits) { return static_cast<cermet_i64>(bits.value); }
  CERMET_HOST_DEVICE Natural bits() const { return static_cast<cermet_u64>(value); }
  friend CERMET_HOST_DEVICE Integer operator+(Integer a, Integer b) { return wrap(a.bits() + b.bits()); }
  friend CERMET_HOST_DEVICE Integer operator-(Integer a, Integer b) { return wrap(a.bits() - b.bits()); }
  friend CERMET_HOST_DEVICE Integer operator*(Integer a, Integer b) { return wrap(a.bits() * b.bits()); }
  friend CERMET_HOST_DEVICE Integer operator-(Integer a) { return wrap(-a.bits()); }
  /// Truncated toward zero.
  friend CERMET_HOST_DEVICE Integer operator/(Integer a, Integer b) {
    if (b.value == 0) return 0;
    return b.value == -1 ? -a : Integer(a.value / b.value);  // the least integer by -1 wraps
  }
  friend CERMET_HOST_DEVICE Integer operator&(Integer a, Integer b) { return a.value & b.value; }
  friend CERMET_HOST_DEVICE Integer operator|(Integer a, Integer b) { return a.value | b.value; }
  friend CERMET_HOST_DEVICE Integer operator^(Integer a, Integer b) { return a.value ^ b.value; }
  friend CERMET_HOST_DEVICE Integer operator~(Integer a) { return ~a.value; }
  friend CERMET_HOST_DEVICE bool operator<(Integer a, Integer b) { return a.value < b.value; }
  friend CERMET_HOST_DEVICE bool operator<=(Integer a, Integer b) { return a.value <= b.value; }
  friend CERMET_HOST_DEVICE bool operator>(Integer a, Integer b) { return a.value > b.value; }
  friend CERMET_HOST_DEVICE bool operator>=(Integer a, Integer b) { return a.value >= b.value; }
  friend CERMET_HOST_DEVICE bool operator==(Integer a, Integer b) { return a.value == b.value; }
  friend CERMET_HOST_DEVICE bool operator!=(Integer a, Integer b) { return a.value != b.value; }
};

CERMET_HOST_DEVICE inline Integer abs(Integer x) { return x < 0 ? -x : x; }
CERMET_HOST_DEVICE inline Integer maximum(Integer a, Integer b) { return a > b ? a : b; }
CERMET_HOST_DEVICE inline Integer minimum(Integer a, Integer b) { return a < b ? a : b; }
CERMET_HOST_DEVICE inline Integer select(bool condition, Integer yes, Integer no) { return condition ? yes : no; }
/// The remainder of the truncated quotient, which has the sign of a.
CERMET_HOST_DEVICE inline Integer trunc_mod(Integer a, Integer b) {
  return b == 0 || b == -1 ? Integer(0) : Integer(a.value % b.value);
}
/// The remainder of the quotient rounded down, which has the sign of b.
CERMET_HOST_DEVICE inline Integer floor_mod(Integer a, Integer b) {
  const Integer remainder = trunc_mod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
CERMET_HOST_DEVICE inline Integer pow(Integer a, Integer b) {
  if (b >= 0) return Integer::wrap(pow(a.bits(), b.bits()));
  return a == 1 ? a : a == -1 ? (b.value & 1 ? a : -a) : Integer(0);
}

}  // namespace cermet
