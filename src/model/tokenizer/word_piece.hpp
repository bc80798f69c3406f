// WordPiece (Schuster and Nakajima, 2012; BERT): the longest token that a word begins with, then the longest
// continuation, and so on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/byte_trie.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

class WordPiece {
 public:
  /// Reads the `model` object, whose `vocab` is given. Throws Error(invalid_file) where a field is broken.
  WordPiece(Json model, const Vocabulary& vocabulary);
  /// Appends the ids of a word, or the unknown token alone where tokens do not cover it or it is too long.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Tokens {
    ByteTrie trie;
    std::vector<std::int32_t> ids;  ///< of the trie's texts
  };
  static Tokens tokens_with(std::string_view prefix, const Vocabulary& vocabulary);

  std::string unknown_name_;
  std::optional<std::int32_t> unknown_;
  std::int64_t longest_;  ///< word, in characters
  Tokens beginnings_, continuations_;
};

/// One token for each piece.
class WordLevel {
 public:
  WordLevel(Json model, const Vocabulary& vocabulary);
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  StringMap<std::int32_t> words_;
  std::string unknown_name_;
};

}  // namespace cermet
