#include "model/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Twice what the largest vocabularies in use need: half a million tokens, and merges as pairs.
constexpr JsonLimits file_limits{.max_bytes = std::size_t{64} << 20, .max_values = std::size_t{4} << 20, .max_depth = 64};

Json checked_model(Json root) {
  if (const auto version = root.find("version"); version && version->as_string() != "1.0") version->unexpected("\"1.0\"", Status::unsupported);
  const Json model = root.at("model");
  if (const auto type = model.find("type"); type && type->as_string() != "BPE") type->unexpected("\"BPE\"", Status::unsupported);
  return model;
}

/// The added tokens that are looked for in normalized text, in their normalized form, or the others.
AddedTokenFinder make_finder(std::span<const AddedToken> tokens, bool normalized, const Normalizer& normalizer, Json root) {
  std::vector<AddedTokenFinder::Pattern> patterns;
  std::vector<std::string_view> texts;
  std::string buffer;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    patterns.push_back({normalized ? std::string(normalizer.apply(token.content, buffer)) : token.content, token});
  }
  texts.reserve(patterns.size());
  for (const auto& pattern : patterns) texts.push_back(pattern.text);
  std::sort(texts.begin(), texts.end());
  if (const auto twice = std::adjacent_find(texts.begin(), texts.end()); twice != texts.end()) {
    root.refuse(fmt::format("added_tokens: expected tokens that normalization keeps apart, found {} twice", quote(*twice)));
  }
  return AddedTokenFinder(std::move(patterns));
}

}  // namespace

/// Memory of one call of encode.
struct Tokenizer::Call {
  RegexMemory regex;
  Bpe::Workspace workspace;
  std::string normalized;
  std::vector<std::int32_t> ids;
};

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  const JsonDocument document = JsonDocument::read(file, file_limits);
  const Json root = document.root();
  const Json model = checked_model(root.as_object());
  Vocabulary vocabulary(model.at("vocab"));
  Bpe bpe(model, vocabulary);  // before added tokens, which merging does not know, join the vocabulary
  const auto list = root.find("added_tokens");
  const std::vector<AddedToken> added = list ? read_added_tokens(*list, vocabulary) : std::vector<AddedToken>{};
  return Tokenizer(root, std::move(vocabulary), std::move(bpe), added);
}

Tokenizer::Tokenizer(Json root, Vocabulary vocabulary, Bpe bpe, std::span<const AddedToken> added)
    : vocabulary_(std::move(vocabulary)),
      bpe_(std::move(bpe)),
      normalizer_(root.find("normalizer")),
      verbatim_(make_finder(added, false, normalizer_, root)),
      normalized_(make_finder(added, true, normalizer_, root)),
      pre_tokenizer_(root.at("pre_tokenizer")),
      post_processor_(PostProcessor::read(root.find("post_processor"), vocabulary_)),
      special_(static_cast<std::size_t>(vocabulary_.size()), false) {
  check_decoder(root.find("decoder"), root);
  std::string buffer;
  for (const AddedToken& token : added) {
    special_[static_cast<std::size_t>(token.id)] = token.special;
    // Stands for the text that it is found as, unless merging gives the id as well: then for the bytes that were merged.
    if (!bpe_.can_emit(token.id)) vocabulary_.set_bytes(token.id, token.normalized ? normalizer_.apply(token.content, buffer) : token.content);
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  require(text.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "text: expected less than 2 GiB, found {} bytes", text.size());
  Call call;
  if (add_special_tokens) call.ids = post_processor_.before;
  // Runs of characters and runs of bytes that are none take turns.
  for (std::size_t begin = 0; begin < text.size();) {
    const bool valid = first_utf8_unit(text.substr(begin)).valid;
    std::size_t end = begin;
    while (end < text.size()) {
      const Utf8Unit unit = first_utf8_unit(text.substr(end));
      if (unit.valid != valid) break;
      end += unit.size;
    }
    const std::string_view run = text.substr(begin, end - begin);
    if (valid) {
      encode_valid(run, call);
    } else {
      bpe_.encode(run, call.workspace, call.ids);
    }
    begin = end;
  }
  if (add_special_tokens) call.ids.insert(call.ids.end(), post_processor_.after.begin(), post_processor_.after.end());
  return std::move(call.ids);
}

void Tokenizer::encode_valid(std::string_view text, Call& call) const {
  const auto piece = [&](std::string_view bytes) { bpe_.encode(bytes, call.workspace, call.ids); };
  const auto normalized_part = [&](AddedTokenFinder::Part part) {
    if (part.token != nullptr) return call.ids.push_back(part.token->id);
    pre_tokenizer_.split(part.text, call.regex, piece);
  };
  const auto verbatim_part = [&](AddedTokenFinder::Part part) {
    if (part.token != nullptr) return call.ids.push_back(part.token->id);
    normalized_.split(normalizer_.apply(part.text, call.normalized), normalized_part);
  };
  verbatim_.split(text, verbatim_part);
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  if (!vocabulary_.contains(id)) return {};
  return vocabulary_.bytes(id);
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!skip_special_tokens || !is_special(id)) bytes += token_bytes(id);
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::string text;
  Utf8Repair repair;
  repair.push(decode_bytes(ids, skip_special_tokens), text);
  repair.finish(text);
  return text;
}

std::string StreamDecoder::push(std::int32_t id) {
  std::string text;
  if (!skip_special_tokens_ || !tokenizer_->is_special(id)) repair_.push(tokenizer_->token_bytes(id), text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  repair_.finish(text);
  return text;
}

}  // namespace cermet
