#include "foreign/expression.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.hpp"
#include "foreign/expression_parser.hpp"

namespace cermet::foreign {
namespace {

[[noreturn]] void overflow(const char* what) {
  fail(Status::invalid_argument, "{}: expected a result below 2^63, found more", what);
}

std::int64_t divisor(std::int64_t value) {
  if (value == 0) fail(Status::invalid_argument, "division: expected a divisor other than 0, found 0");
  return value;
}

// ---- One operation, on integers, real numbers and intervals ----

std::int64_t add(std::int64_t a, std::int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) overflow("sum");
  return a;
}
std::int64_t subtract(std::int64_t a, std::int64_t b) {
  if (__builtin_sub_overflow(a, b, &a)) overflow("difference");
  return a;
}
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) overflow("product");
  return a;
}
std::int64_t divide(std::int64_t a, std::int64_t b) { return divisor(b) == -1 ? subtract(0, a) : a / b; }
std::int64_t remainder_of(std::int64_t a, std::int64_t b) { return divisor(b) == -1 ? 0 : a % b; }
std::int64_t less(std::int64_t a, std::int64_t b) { return a < b; }
std::int64_t equal(std::int64_t a, std::int64_t b) { return a == b; }
std::int64_t minimum(std::int64_t a, std::int64_t b) { return std::min(a, b); }
std::int64_t maximum(std::int64_t a, std::int64_t b) { return std::max(a, b); }
std::int64_t from_integer(std::int64_t value, std::int64_t) { return value; }
std::int64_t power_of_2(std::int64_t a) {
  if (a > std::int64_t{1} << 62) overflow("next_power_of_2");
  return a <= 1 ? 1 : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(a)));
}
std::int64_t all_of(std::int64_t a, std::int64_t b) { return a != 0 && b != 0; }
std::int64_t any_of(std::int64_t a, std::int64_t b) { return a != 0 || b != 0; }
std::int64_t none_of(std::int64_t a) { return a == 0; }

double add(double a, double b) { return a + b; }
double subtract(double a, double b) { return a - b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }
double remainder_of(double a, double b) { return std::fmod(a, b); }
double less(double a, double b) { return a < b ? 1 : 0; }
double equal(double a, double b) { return a == b ? 1 : 0; }
double minimum(double a, double b) { return std::min(a, b); }
double maximum(double a, double b) { return std::max(a, b); }
double from_integer(std::int64_t value, double) { return static_cast<double>(value); }
double power_of_2(double a) { return a <= 1 ? 1 : std::exp2(std::ceil(std::log2(a))); }
double all_of(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }
double any_of(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }
double none_of(double a) { return a == 0 ? 1 : 0; }

Interval add(const Interval& a, const Interval& b) { return a + b; }
Interval subtract(const Interval& a, const Interval& b) { return a - b; }
Interval multiply(const Interval& a, const Interval& b) { return a * b; }
Interval divide(const Interval& a, const Interval& b) { return a / b; }
Interval remainder_of(const Interval& a, const Interval& b) { return a % b; }
Interval from_integer(std::int64_t value, const Interval&) { return Interval::exactly(value); }
Interval power_of_2(const Interval& a) {
  const auto bounded = [](std::int64_t value) { return power_of_2(std::min(value, Interval::any)); };
  return {bounded(a.least), bounded(a.most)};
}
Interval all_of(const Interval& a, const Interval& b) { return {a.always() && b.always(), !a.never() && !b.never()}; }
Interval any_of(const Interval& a, const Interval& b) { return {a.always() || b.always(), !a.never() || !b.never()}; }
Interval none_of(const Interval& a) { return {a.never(), !a.always()}; }

template <class T>
T ceil_div_of(const T& a, const T& b) {
  const T one = from_integer(1, T());
  return divide(subtract(add(a, b), one), b);
}
double ceil_div_of(double a, double b) { return std::ceil(a / b); }

}  // namespace

template <class T>
T Expression::apply(Code code, const T& a, const T& b) {
  switch (code) {
    case Code::add: return add(a, b);
    case Code::subtract: return subtract(a, b);
    case Code::multiply: return multiply(a, b);
    case Code::divide: return divide(a, b);
    case Code::remainder: return remainder_of(a, b);
    case Code::less: return less(a, b);
    case Code::less_equal: return none_of(less(b, a));
    case Code::equal: return equal(a, b);
    case Code::logical_and: return all_of(a, b);
    case Code::logical_or: return any_of(a, b);
    case Code::minimum: return minimum(a, b);
    case Code::maximum: return maximum(a, b);
    case Code::ceil_div: return ceil_div_of(a, b);
    case Code::round_up: return multiply(ceil_div_of(a, b), b);
    default: break;
  }
  CERMET_ASSERT(code == Code::round_up);
  return a;
}

template <class T>
T Expression::evaluate(std::span<const T> variables) const {
  std::array<T, most_depth> stack{};
  std::size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.code) {
      case Code::constant: stack[top++] = from_integer(step.constant, T()); break;
      case Code::variable: stack[top++] = variables[static_cast<std::size_t>(step.constant)]; break;
      case Code::negate: stack[top - 1] = subtract(from_integer(0, T()), stack[top - 1]); break;
      case Code::logical_not: stack[top - 1] = none_of(stack[top - 1]); break;
      case Code::next_power_of_2: stack[top - 1] = power_of_2(stack[top - 1]); break;
      default: --top; stack[top - 1] = apply(step.code, stack[top - 1], stack[top]);
    }
  }
  CERMET_ASSERT(top == 1);
  return stack[0];
}

template std::int64_t Expression::evaluate(std::span<const std::int64_t>) const;
template double Expression::evaluate(std::span<const double>) const;
template Interval Expression::evaluate(std::span<const Interval>) const;

bool Expression::uses(std::size_t variable) const {
  return std::ranges::any_of(steps_, [&](const Step& s) {
    return s.code == Code::variable && s.constant == static_cast<std::int64_t>(variable);
  });
}

Expression Expression::parse(std::string_view text, std::string_view source, const Lookup& lookup) {
  return ExpressionParser(text, source, lookup).parse();
}

}  // namespace cermet::foreign
