// The unigram model of SentencePiece (Kudo, 2018): of all ways to cut a piece into tokens, the one whose scores have
// the highest sum.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/byte_trie.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

class Unigram {
 public:
  /// Scratch of one call of Tokenizer::encode.
  class Workspace {
    friend class Unigram;
    struct Node {
      double score;        ///< of the best way to here
      std::int64_t begin;  ///< of its last token; -1: there is no way yet
      std::int32_t id;
    };
    std::vector<Node> nodes;  ///< by byte
    std::vector<std::int32_t> backwards;
  };

  /// Reads the `model` object, whose `vocab` is given. Throws Error(invalid_file) where a field is broken.
  Unigram(Json model, const Vocabulary& vocabulary);
  /// Appends the ids of a piece, in time linear in its length. Neighbouring characters without a token become the
  /// tokens of their bytes ("<0xE2>", where the file wants that and has all), else one unknown token. Throws
  /// Error(unsupported) where it has none.
  void encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;

 private:
  void find_best(std::string_view piece, Workspace& workspace) const;
  void append_unknown(std::string_view text, std::vector<std::int32_t>& backwards) const;

  ByteTrie trie_;
  std::vector<std::int32_t> ids_;  ///< of the trie's texts
  std::vector<double> scores_;     ///< by id
  double unknown_score_ = 0;
  std::optional<std::int32_t> unknown_;
  bool byte_fallback_ = false;
  std::array<std::int32_t, 256> bytes_{};  ///< "<0x00>" and on; -1: no token
};

}  // namespace cermet
