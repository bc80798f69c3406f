// A byte-level BPE tokenizer read from a Hugging Face tokenizer.json: text to ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/decoder.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/post_processor.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

/// Const use is thread-safe: every call has its own memory.
class Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws Error(io) where it cannot be read, Error(invalid_file) where it is broken, and Error(unsupported) naming a component
  /// or setting that is not implemented. Its `truncation` and `padding` are not read: they are the settings of a batch, not of the tokenizer.
  static Tokenizer load(const std::filesystem::path& file);

  /// The ids of a text, which may be any bytes. For valid UTF-8 they are those of Hugging Face's tokenizers library. Bytes that are not UTF-8 form pieces
  /// of their own: no added token, normalization or expression looks at them. Takes time linear in the text's length but for single pieces, O(n log n).
  /// `add_special_tokens` puts the file's template around them ("<|begin_of_text|>"). Added tokens that stand in the text become ids in any case.
  /// Throws Error(invalid_argument) for a byte without a token in an incomplete vocabulary.
  ///
  /// decode_bytes(encode(text, false)) gives the text back, byte for byte, unless the file asks for a change: NFC normalization, added tokens that
  /// strip white space, add_prefix_space, or a split that removes its matches.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;

  /// The exact bytes that the ids stand for. Ids without a token add nothing: models pad their vocabulary (see
  /// `contains`).
  std::string decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;
  /// The same as valid UTF-8: a broken start of a character becomes U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// 1 + the highest id.
  std::int32_t vocab_size() const { return vocabulary_.size(); }
  bool contains(std::int32_t id) const { return vocabulary_.contains(id); }
  /// By the name in the file ("Ġthe", "<|im_start|>").
  std::optional<std::int32_t> token_to_id(std::string_view name) const { return vocabulary_.find(name); }
  /// The bytes that an id adds to the text; "" for an id without a token.
  std::string_view token_bytes(std::int32_t id) const;
  /// Marked as special in the file: left out where decoding skips special tokens.
  bool is_special(std::int32_t id) const { return vocabulary_.contains(id) && special_[static_cast<std::size_t>(id)]; }

 private:
  struct Call;

  Tokenizer(Json root, Vocabulary vocabulary, Bpe bpe, std::span<const AddedToken> added);
  void encode_valid(std::string_view text, Call& call) const;

  Vocabulary vocabulary_;  ///< of the model, and the added tokens
  Bpe bpe_;
  Normalizer normalizer_;
  AddedTokenFinder verbatim_, normalized_;  ///< added tokens looked for before and after normalization
  PreTokenizer pre_tokenizer_;
  PostProcessor post_processor_;
  std::vector<bool> special_;
};

/// Decodes ids one by one. The concatenation of everything returned equals Tokenizer::decode of all ids.
class StreamDecoder {
 public:
  /// The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = false) : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// The text that the id completes; an incomplete character is held back until its bytes have come.
  std::string push(std::int32_t id);
  /// What was held back, as U+FFFD; the decoder is then as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  Utf8Repair repair_;
};

}  // namespace cermet
