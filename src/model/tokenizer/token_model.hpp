// The `model` of a tokenizer.json: pieces to ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/unigram.hpp"
#include "model/tokenizer/word_piece.hpp"

namespace cermet {

class TokenModel {
 public:
  /// Memory of one call of Tokenizer::encode.
  struct Workspace {
    Bpe::Workspace bpe;
    Unigram::Workspace unigram;
  };

  /// Reads the `model` object, whose `vocab` is given: BPE, Unigram, WordPiece or WordLevel; without `type` what its
  /// fields belong to. Throws Error(invalid_file) where a field is broken, Error(unsupported) naming another type.
  TokenModel(Json model, const Vocabulary& vocabulary);
  /// Appends the ids of a piece, which may have bytes that are not UTF-8.
  void encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;
  /// Whether encode can return the id, where that is known; true for others of the vocabulary.
  bool can_emit(std::int32_t id) const;

 private:
  using Kind = std::variant<Bpe, Unigram, WordPiece, WordLevel>;
  static Kind read(Json model, const Vocabulary& vocabulary);

  std::int32_t size_;  ///< of the vocabulary, before added tokens
  Kind kind_;
};

}  // namespace cermet
