// Arithmetic on captured constants: "[c1 * c2]".
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"

namespace cermet {

class TextReader;

class ScalarExpression {
 public:
  /// Reads `sum` of terms: + - * / and parentheses, names (whose slots `slot_of` gives), numbers, and sqrt, exp, log,
  /// abs, min, max and pow of expressions.
  static ScalarExpression read(TextReader& reader, FunctionRef<int(std::string_view name)> slot_of);
  double value(std::span<const double> scalars) const;
  const std::vector<int>& slots() const { return slots_; }  ///< that it reads

 private:
  friend class ScalarExpressionReader;
  struct Step {
    char action;  ///< 'n' a number, 'c' a captured constant, 'f' a function by number, otherwise the operation's sign
    double number;
    int slot;
  };
  std::vector<Step> steps_;  ///< in the order in which a stack runs them
  std::vector<int> slots_;
};

}  // namespace cermet
