#include "model/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"

namespace cermet {
namespace {

/// Twice what the largest vocabularies in use need: half a million tokens, and merges as pairs.
constexpr JsonLimits file_limits{
    .max_bytes = std::size_t{64} << 20, .max_values = std::size_t{4} << 20, .max_depth = 64};

Json checked_model(Json root) {
  if (const auto version = root.find("version"); version && version->as_string() != "1.0")
    version->unexpected("\"1.0\"", Status::unsupported);
  return root.at("model").as_object();
}

/// The added tokens that are looked for in normalized text, in their normalized form, or the others.
AddedTokenFinder make_finder(std::span<const AddedToken> tokens, bool normalized, const Normalizer& normalizer,
                             Json root) {
  std::vector<AddedTokenFinder::Pattern> patterns;
  std::vector<std::string_view> texts;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    std::string text = normalized ? normalizer.normalized(token.content) : token.content;
    if (!text.empty()) patterns.push_back({std::move(text), token});  // what normalization removes is never found
  }
  texts.reserve(patterns.size());
  for (const auto& pattern : patterns) texts.push_back(pattern.text);
  std::sort(texts.begin(), texts.end());
  if (const auto twice = std::adjacent_find(texts.begin(), texts.end()); twice != texts.end()) {
    root.refuse(
        fmt::format("added_tokens: expected tokens that normalization keeps apart, found {} twice", quote(*twice)));
  }
  return AddedTokenFinder(std::move(patterns));
}

}  // namespace

/// Memory of one call of encode.
struct Tokenizer::Call {
  RegexMemory regex;
  TokenModel::Workspace workspace;
  std::vector<std::int32_t> ids;
};

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  const JsonDocument document = JsonDocument::read(file, file_limits);
  const Json root = document.root();
  const Json model = checked_model(root.as_object());
  Vocabulary vocabulary(model.at("vocab"));
  TokenModel made(model, vocabulary);  // before added tokens, which the model does not know, join the vocabulary
  const auto list = root.find("added_tokens");
  const std::vector<AddedToken> added = list ? read_added_tokens(*list, vocabulary) : std::vector<AddedToken>{};
  return Tokenizer(root, std::move(vocabulary), std::move(made), added);
}

Tokenizer::Tokenizer(Json root, Vocabulary vocabulary, TokenModel model, std::span<const AddedToken> added)
    : vocabulary_(std::move(vocabulary)),
      model_(std::move(model)),
      normalizer_(root.find("normalizer")),
      verbatim_(make_finder(added, false, normalizer_, root)),
      normalized_(make_finder(added, true, normalizer_, root)),
      pre_tokenizer_(root.find("pre_tokenizer")),
      post_processor_(PostProcessor::read(root.find("post_processor"), vocabulary_)),
      decoder_(root.find("decoder")) {
  std::set<std::string_view> special;
  for (const AddedToken& token : added)
    if (token.special) special.insert(token.content);
  for (const AddedToken& token : added) {
    Added& made = added_[token.id];
    made.name = token.normalized ? normalizer_.normalized(token.content) : token.content;
    made.special = special.contains(made.name);  // the library looks for the normalized name, too
    made.verbatim = !model_.can_emit(token.id) && !(token.normalized && normalizer_.maps_bytes());
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  require(text.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "text: expected less than 2 GiB, found {} bytes", text.size());
  Call call;
  if (add_special_tokens) call.ids = post_processor_.before;
  const bool maps_bytes = pre_tokenizer_.maps_bytes() || normalizer_.maps_bytes();
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
    if (valid) encode_valid(run, begin == 0, call);
    else model_.encode(maps_bytes ? name_of_bytes(run) : std::string(run), call.workspace, call.ids);
    begin = end;
  }
  if (add_special_tokens) call.ids.insert(call.ids.end(), post_processor_.after.begin(), post_processor_.after.end());
  return std::move(call.ids);
}

void Tokenizer::encode_valid(std::string_view text, bool at_start, Call& call) const {
  verbatim_.split(
      text, [&](AddedTokenFinder::Part part) { encode_part(part, at_start && part.text.data() == text.data(), call); });
}

/// A part that is no added token, or one that is looked for before normalization.
void Tokenizer::encode_part(AddedTokenFinder::Part part, bool at_start, Call& call) const {
  if (part.token != nullptr) return call.ids.push_back(part.token->id);
  NormalizedText normalized;
  std::string_view text = part.text;
  if (!normalizer_.is_none()) {
    normalized.text = text;
    normalizer_.apply(normalized, call.regex);
    text = normalized.text;
  }
  at_start = at_start && normalized.keeps_start;
  normalized_.split(text, [&](AddedTokenFinder::Part piece) {
    if (piece.token != nullptr) return call.ids.push_back(piece.token->id);
    pre_tokenizer_.split({piece.text, at_start && piece.text.data() == text.data()}, call.regex,
                         [&](std::string_view one) { model_.encode(one, call.workspace, call.ids); });
  });
}

std::string Tokenizer::decode_one(std::int32_t id, bool skip_special_tokens, Decoding& decoding) const {
  if (!contains(id)) return "";
  const Added* added = added_at(id);
  if (added == nullptr) return decoding.push(vocabulary_.name(id), false);
  return skip_special_tokens && added->special ? "" : decoding.push(added->name, added->verbatim);
}

std::string Tokenizer::decode_all(std::span<const std::int32_t> ids, bool skip_special_tokens, bool bytes) const {
  Decoding decoding(decoder_, bytes);
  std::string text;
  for (const std::int32_t id : ids) text += decode_one(id, skip_special_tokens, decoding);
  return text += decoding.finish();
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return decode_all(ids, skip_special_tokens, true);
}
std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return decode_all(ids, skip_special_tokens, false);
}

std::string StreamDecoder::finish() {
  std::string text = decoding_.finish();
  decoding_ = Decoding(tokenizer_->decoder_, false);
  return text;
}

}  // namespace cermet
