// Splits a text at matches, and what becomes of these.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/pieces.hpp"

namespace cermet {

/// Of "a-b" and the match "-", the pieces are ...
enum class SplitBehavior {
  isolated,              ///< a, -, b
  removed,               ///< a, b
  merged_with_previous,  ///< a-, b
  merged_with_next,      ///< a, -b
  contiguous,            ///< as isolated, but neighbouring matches form one piece
};

/// Throws Error(unsupported) for another name.
SplitBehavior read_behavior(Json value);

class Splitter {
 public:
  /// Calls sink for all of a text, in order: matches and what lies between them.
  using Find = std::function<void(std::string_view text, RegexMemory& memory, FunctionRef<void(SplitPiece)> sink)>;
  /// `invert` exchanges matches and what lies between them.
  Splitter(Find find, SplitBehavior behavior, bool invert = false)
      : find_(std::move(find)), behavior_(behavior), invert_(invert) {}
  /// At matches of an expression, or at single characters.
  static Find at(Regex regex);
  static Find at(std::function<bool(char32_t)> is_match);

  /// Calls sink for the pieces, which are not empty, in order.
  void split(std::string_view text, RegexMemory& memory,
             FunctionRef<void(std::size_t begin, std::size_t end)> sink) const;

 private:
  Find find_;
  SplitBehavior behavior_;
  bool invert_;
};

}  // namespace cermet
