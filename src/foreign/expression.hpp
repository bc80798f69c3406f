// Whole numbers, and conditions on them, that a manifest writes as text: "ceil_div(M, block) * 2", "N % 8 == 0 && N <=
// 8192".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "foreign/interval.hpp"

namespace cermet::foreign {

/// Variables are places in a list of values, which the manifest lays out: dimensions, tile fields, attributes, strides.
class Expression {
 public:
  /// The place of a name, or of a call ("stride", {"x", "0"}), that is a variable; nothing where it is none.
  using Lookup =
      std::function<std::optional<std::size_t>(std::string_view name, std::span<const std::string> arguments)>;

  Expression() = default;
  explicit Expression(std::int64_t constant) : text_(std::to_string(constant)), steps_{{Code::constant, constant}} {}
  /// Integers, names, calls of variables, ceil_div, round_up, min, max and next_power_of_2, and in the order in which
  /// they bind: unary - and !; * / %; + -; < <= > >= == !=; &&; ||. Division is C's. Throws Error(invalid_file) that
  /// begins with `source` and quotes what was expected and found.
  static Expression parse(std::string_view text, std::string_view source, const Lookup& lookup);

  const std::string& text() const { return text_; }
  /// Whether it has this variable.
  bool uses(std::size_t variable) const;

  /// The value; a condition's is 1 or 0. Throws Error for a division by 0 and for what passes 2^63.
  std::int64_t value(std::span<const std::int64_t> variables) const { return evaluate<std::int64_t>(variables); }
  /// In double precision, where / is the division of real numbers.
  double real(std::span<const double> variables) const { return evaluate<double>(variables); }
  /// Between what the value lies where each variable lies in its interval; of a condition {1, 1} where it always holds.
  Interval bounds(std::span<const Interval> variables) const { return evaluate<Interval>(variables); }

  static constexpr std::size_t most_characters = 1024, most_steps = 256, most_depth = 32;

 private:
  enum class Code : std::uint8_t {
    constant,
    variable,
    negate,
    logical_not,
    next_power_of_2,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    less,
    less_equal,
    equal,
    logical_and,
    logical_or,
    minimum,
    maximum,
    ceil_div,
    round_up,
  };
  struct Step {
    Code code;
    std::int64_t constant;  ///< or the variable's place
  };
  friend class ExpressionParser;

  template <class T>
  T evaluate(std::span<const T> variables) const;
  template <class T>
  static T apply(Code code, const T& a, const T& b);

  std::string text_;
  std::vector<Step> steps_;  ///< in the order of a stack machine
};

}  // namespace cermet::foreign
