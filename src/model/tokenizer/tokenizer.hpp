// A tokenizer read from a Hugging Face tokenizer.json: text to ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/decoder.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/post_processor.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/token_model.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

/// Const use is thread-safe: every call has its own memory.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws Error(io) where it cannot be read, Error(invalid_file) where it is broken, and
  /// Error(unsupported) naming a component or setting that is not implemented. Its `truncation` and `padding` are not
  /// read: they are the settings of a batch, not of the tokenizer.
  static Tokenizer load(const std::filesystem::path& file);

  /// The ids of a text, which may be any bytes. For valid UTF-8 they are those of Hugging Face's tokenizers library.
  /// Bytes that are not UTF-8 form pieces of their own: no added token, normalization or expression looks at them.
  /// Takes time linear in the text's length but for single pieces, O(n log n). `add_special_tokens` puts the file's
  /// template around them ("<|begin_of_text|>"). Added tokens that stand in the text become ids in any case. What the
  /// vocabulary cannot spell becomes its unknown token, or nothing where it has none.
  ///
  /// Of a byte-level BPE, decode_bytes(encode(text, false)) gives the text back, byte for byte, unless the file asks
  /// for a change: normalization, added tokens that strip white space, add_prefix_space, or a split that removes its
  /// matches.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;

  /// The exact bytes that the ids stand for. Ids without a token add nothing: models pad their vocabulary (see
  /// `contains`).
  std::string decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;
  /// The same as valid UTF-8, as the library decodes: broken characters become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// 1 + the highest id.
  std::int32_t vocab_size() const { return vocabulary_.size(); }
  bool contains(std::int32_t id) const { return vocabulary_.contains(id); }
  /// By the name in the file ("Ġthe", "<|im_start|>").
  std::optional<std::int32_t> token_to_id(std::string_view name) const { return vocabulary_.find(name); }
  /// Marked as special in the file: left out where decoding skips special tokens.
  bool is_special(std::int32_t id) const { return contains(id) && added_at(id) && added_at(id)->special; }

 private:
  friend class StreamDecoder;
  struct Call;
  /// What decoding knows about an added token.
  struct Added {
    std::string name;       ///< that the decoder takes
    bool special = false;   ///< left out where special tokens are
    bool verbatim = false;  ///< its name's letters are not a spelling of bytes: the model never makes it of these
  };

  Tokenizer(Json root, Vocabulary vocabulary, TokenModel model, std::span<const AddedToken> added);
  void encode_valid(std::string_view text, bool at_start, Call& call) const;
  void encode_part(AddedTokenFinder::Part part, bool at_start, Call& call) const;
  const Added* added_at(std::int32_t id) const {
    const auto found = added_.find(id);
    return found == added_.end() ? nullptr : &found->second;
  }
  /// Hands the id's token to the decoding, and returns the text that it completes.
  std::string decode_one(std::int32_t id, bool skip_special_tokens, Decoding& decoding) const;
  std::string decode_all(std::span<const std::int32_t> ids, bool skip_special_tokens, bool bytes) const;

  Vocabulary vocabulary_;  ///< of the model, and the added tokens
  TokenModel model_;
  Normalizer normalizer_;
  AddedTokenFinder verbatim_, normalized_;  ///< added tokens looked for before and after normalization
  PreTokenizer pre_tokenizer_;
  PostProcessor post_processor_;
  Decoder decoder_;
  std::unordered_map<std::int32_t, Added> added_;
};

/// Decodes ids one by one. The concatenation of everything returned equals Tokenizer::decode of all ids.
class StreamDecoder {
 public:
  /// The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = false)
      : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens), decoding_(tokenizer.decoder_, false) {}

  /// The text that the id completes; what later ids may change is held back until they have come: an incomplete
  /// character, or a run of byte tokens.
  std::string push(std::int32_t id) { return tokenizer_->decode_one(id, skip_special_tokens_, decoding_); }
  /// What was held back; the decoder is then as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  Decoding decoding_;
};

}  // namespace cermet
