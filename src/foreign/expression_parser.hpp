// Text to the steps of an expression, by precedence climbing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foreign/expression.hpp"

namespace cermet::foreign {

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::string_view source, const Expression::Lookup& lookup);
  Expression parse();

 private:
  using Code = Expression::Code;
  struct Operator {
    std::string_view text;
    int binds;  ///< the larger, the closer
    Code code;
    bool negated = false;  ///< a > b is !(a <= b)
  };
  static const Operator* find_operator(std::string_view rest);

  void parse_binary(int least);
  void parse_unary();
  void parse_name();
  std::vector<std::string> parse_arguments(std::string_view name);
  std::string_view word();
  void skip_spaces();
  bool take(std::string_view token);
  void emit(Code code, std::int64_t constant = 0);
  [[noreturn]] void refuse(std::string_view expected) const;

  std::string_view text_, rest_;
  std::string source_;
  const Expression::Lookup& lookup_;
  Expression made_;
  std::size_t depth_ = 0;  ///< of the stack
  int nesting_ = 0;
};

}  // namespace cermet::foreign
