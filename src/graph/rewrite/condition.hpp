// Side conditions of rules as text: "real; B >= 0; c != 0".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/rewrite/pattern.hpp"

namespace cermet {

/// What must hold where a pattern was found. Items between semicolons:
///   number, integer, any    element types of the anchor's operand (see below); floating types where none of these is
///   said B >= 0, c1 <= c2        of captured constants their numbers, of other values what range_of() proves of all
///   elements that are not NaN finite x, not_nan x     proven of all elements power_of_two c, integral c same a b one
///   type own w                   a constant that no other node reads
///   (..)                    words for what the row's function checks
class Condition {
 public:
  enum class Types : std::uint8_t { real, number, integer, any };
  static Condition parse(std::string_view text, const Pattern& before);
  bool holds(const Match& match) const;
  Types types() const { return types_; }
  bool is_captured(int slot) const;  ///< the name of a constant whose elements are one number

 private:
  struct Test {
    std::string word, left, right;  ///< a word or a comparison, and its names; a right side without a name is a number
    double number = 0;
    bool is_scalar = false;  ///< the left one is a captured constant
  };
  bool holds(const Test& test, const Match& match) const;
  Types types_ = Types::real;
  std::vector<Test> tests_;
  std::vector<int> captured_;  ///< slots of captured constants
};

}  // namespace cermet
