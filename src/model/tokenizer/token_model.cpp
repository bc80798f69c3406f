#include "model/tokenizer/token_model.hpp"

namespace cermet {
namespace {

/// Of files older than the field.
std::string_view type_by_fields(Json model) {
  if (model.find("merges")) return "BPE";
  if (model.at("vocab").is(JsonKind::array)) return "Unigram";
  return model.find("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

}  // namespace

TokenModel::Kind TokenModel::read(Json model, const Vocabulary& vocabulary) {
  const auto type = model.find("type");
  const std::string_view name = type ? type->as_string() : type_by_fields(model);
  const Json vocab = model.at("vocab");
  if (name == "Unigram") {
    vocab.as_array();
    return Unigram(model, vocabulary);
  }
  vocab.as_object();
  if (name == "BPE") return Bpe(model, vocabulary);
  if (name == "WordPiece") return WordPiece(model, vocabulary);
  if (name == "WordLevel") return WordLevel(model, vocabulary);
  type->unexpected("\"BPE\", \"Unigram\", \"WordPiece\" or \"WordLevel\"", Status::unsupported);
}

TokenModel::TokenModel(Json model, const Vocabulary& vocabulary)
    : size_(vocabulary.size()), kind_(read(model, vocabulary)) {}

void TokenModel::encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const {
  if (const auto* bpe = std::get_if<Bpe>(&kind_)) return bpe->encode(piece, workspace.bpe, ids);
  if (const auto* unigram = std::get_if<Unigram>(&kind_)) return unigram->encode(piece, workspace.unigram, ids);
  if (const auto* words = std::get_if<WordPiece>(&kind_)) return words->encode(piece, ids);
  std::get<WordLevel>(kind_).encode(piece, ids);
}

bool TokenModel::can_emit(std::int32_t id) const {
  const auto* bpe = std::get_if<Bpe>(&kind_);
  return bpe ? bpe->can_emit(id) : id < size_;
}

}  // namespace cermet
