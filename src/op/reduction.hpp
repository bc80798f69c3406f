// How many values become one: shared by the reductions along axes and the collectives.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace cermet {

enum class Reduction { sum, mean, prod, max, min };

/// "sum", "prod", "max", "min"; "mean" or, as collectives spell it, "avg".
inline Reduction reduction_from_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{"sum", "mean", "prod", "max", "min"};
  const auto at = std::find(names.begin(), names.end(), name == "avg" ? "mean" : name);
  CERMET_ASSERT(at != names.end());
  return static_cast<Reduction>(at - names.begin());
}

/// Reduces numbers in order: the definition for floating types.
class RealReducer {
 public:
  explicit RealReducer(Reduction kind) : kind_(kind) {
    if (kind == Reduction::prod) value_ = 1;
    if (kind == Reduction::max) value_ = -std::numeric_limits<double>::infinity();
    if (kind == Reduction::min) value_ = std::numeric_limits<double>::infinity();
  }
  void add(double x) {
    ++count_;
    absolute_ += std::abs(x);
    if (kind_ == Reduction::sum || kind_ == Reduction::mean) value_ += x;
    else if (kind_ == Reduction::prod) value_ *= x;
    else if (std::isnan(x) || (kind_ == Reduction::max ? x > value_ : x < value_))
      value_ = std::isnan(value_) ? value_ : x;
  }
  /// Of nothing: sum 0, prod 1, max -inf, min inf, mean NaN.
  double result() const { return kind_ == Reduction::mean ? value_ / static_cast<double>(count_) : value_; }
  /// What the error bound of float32 accumulation scales with.
  double magnitude() const {
    if (kind_ == Reduction::sum) return absolute_;
    return kind_ == Reduction::mean ? absolute_ / static_cast<double>(count_) : std::abs(value_);
  }

 private:
  Reduction kind_;
  double value_ = 0, absolute_ = 0;
  std::int64_t count_ = 0;
};

/// Reduces integers: sums are exact and clamped once to [low, high], or wrap around there; products are clamped after
/// every factor; a mean is rounded half to even.
class IntegerReducer {
 public:
  __extension__ using Wide = __int128;

  IntegerReducer(Reduction kind, Wide low, Wide high, bool wraps = false)
      : kind_(kind), low_(low), high_(high), wraps_(wraps) {
    if (kind == Reduction::prod) value_ = 1;
    if (kind == Reduction::max) value_ = low;
    if (kind == Reduction::min) value_ = high;
  }
  void add(Wide x) {
    ++count_;
    if (kind_ == Reduction::sum || kind_ == Reduction::mean) value_ += x;
    else if (kind_ == Reduction::prod) value_ = product(value_, x);
    else value_ = kind_ == Reduction::max ? std::max<Wide>(value_, x) : std::min<Wide>(value_, x);
  }
  /// Of nothing: sum and mean 0, prod 1, max the lowest and min the highest value. Those of u64 are given as their
  /// bits.
  std::int64_t result() const {
    if (wraps_) {
      const Wide values = high_ - low_ + 1, above = (value_ - low_) % values;
      return static_cast<std::int64_t>(low_ + (above < 0 ? above + values : above));
    }
    const Wide value = kind_ == Reduction::mean && count_ > 0 ? rounded_quotient(value_, count_) : value_;
    return static_cast<std::int64_t>(std::clamp<Wide>(value, low_, high_));
  }

 private:
  Wide product(Wide a, Wide b) const {
    Wide result;
    if (__builtin_mul_overflow(a, b, &result)) return high_;  // two of u64, which are positive
    return std::clamp<Wide>(result, low_, high_);
  }

  static Wide rounded_quotient(Wide a, Wide b) {
    Wide quotient = a / b, remainder = a % b;  // towards zero; the remainder has the sign of a
    const Wide doubled = 2 * (remainder < 0 ? -remainder : remainder);
    if (doubled > b || (doubled == b && quotient % 2 != 0)) quotient += a < 0 ? -1 : 1;
    return quotient;
  }

  Reduction kind_;
  Wide low_, high_;
  bool wraps_;
  Wide value_ = 0;
  std::int64_t count_ = 0;
};

/// With the range of an integer type, or of bool: 0 and 1.
inline IntegerReducer integer_reducer(Reduction kind, DType dtype, bool wraps = false) {
  CERMET_ASSERT(is_integer(dtype) || dtype == DType::boolean);
  if (dtype == DType::boolean) return {kind, 0, 1};
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const IntegerReducer::Wide values = static_cast<IntegerReducer::Wide>(1) << (8 * size_of(dtype));
  return is_signed ? IntegerReducer(kind, -values / 2, values / 2 - 1, wraps)
                   : IntegerReducer(kind, 0, values - 1, wraps);
}

}  // namespace cermet
