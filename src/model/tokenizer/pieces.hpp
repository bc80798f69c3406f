// A text as matches of an expression and what lies between them.
#pragma once

#include <optional>
#include <string_view>

#include "model/tokenizer/regex.hpp"

namespace cermet {

struct SplitPiece {
  std::size_t begin, end;
  bool is_match;
};

/// All of a text. After an empty match the search goes on one character later.
class Pieces {
 public:
  Pieces(const Regex& regex, std::string_view text, RegexMemory& memory)
      : regex_(regex), text_(text), memory_(memory) {}
  std::optional<SplitPiece> next();

 private:
  const Regex& regex_;
  std::string_view text_;
  RegexMemory& memory_;
  std::size_t from_ = 0;                           ///< where the search goes on
  std::size_t done_ = 0;                           ///< end of what was returned
  std::size_t last_end_ = std::string_view::npos;  ///< of the last match
  std::optional<SplitPiece> match_;                ///< found, after the piece that was returned
};

}  // namespace cermet
