// The `pre_tokenizer` of a tokenizer.json: cuts text into the pieces that are merged each by itself.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/regex.hpp"

namespace cermet {

/// What becomes of the matches of a step's expression: of "a-b" and "-", the pieces are ...
enum class SplitBehavior {
  isolated,              ///< a, -, b
  removed,               ///< a, b
  merged_with_previous,  ///< a-, b
  merged_with_next,      ///< a, -b
  contiguous,            ///< as isolated, but neighbouring matches form one piece
};

class PreTokenizer {
 public:
  /// Reads the component: ByteLevel, or a Sequence of Split and Digits that ends with ByteLevel. Throws Error(unsupported) naming anything else.
  explicit PreTokenizer(Json component);

  /// Calls sink for the pieces of valid UTF-8 in order; a piece is valid during the call only.
  void split(std::string_view text, RegexMemory& memory, FunctionRef<void(std::string_view)> sink) const { apply(0, text, memory, sink); }

 private:
  struct Step {
    std::optional<Regex> regex;  ///< none: a single piece
    SplitBehavior behavior = SplitBehavior::isolated;
    bool invert = false;            ///< exchanges matches and what lies between them
    bool add_prefix_space = false;  ///< puts a space before a text that does not start with one
  };
  void read(Json component, bool is_last);
  static Step read_split(Json component);
  static Step read_byte_level(Json component);
  void apply(std::size_t index, std::string_view text, RegexMemory& memory, FunctionRef<void(std::string_view)> sink) const;

  std::vector<Step> steps_;
};

}  // namespace cermet
