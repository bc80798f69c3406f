#include "model/tokenizer/post_processor.hpp"

#include "base/text.hpp"

namespace cermet {
namespace {

void append_special(Json piece, Json special_tokens, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids) {
  const Json name = piece.at("id");
  const auto token = special_tokens.find(name.as_string());
  if (!token) name.unexpected("a name from special_tokens");
  for (Json id : token->at("ids").as_array()) {
    const std::int64_t number = id.as_integer(0, vocabulary.size() - 1);
    if (!vocabulary.contains(static_cast<std::int32_t>(number))) id.unexpected("the id of a token");
    ids.push_back(static_cast<std::int32_t>(number));
  }
}

PostProcessor read_template(Json component, const Vocabulary& vocabulary) {
  PostProcessor result;
  const Json single = component.at("single");
  const Json special_tokens = component.at("special_tokens").as_object();
  bool text_seen = false;
  for (Json piece : single.as_array()) {
    if (const auto sequence = piece.find("Sequence")) {
      const Json id = sequence->at("id");
      if (id.as_string() != "A" || text_seen) id.unexpected("\"A\" once");
      text_seen = true;
    } else {
      append_special(piece.at("SpecialToken"), special_tokens, vocabulary, text_seen ? result.after : result.before);
    }
  }
  if (!text_seen) single.refuse("expected the text's place, {\"Sequence\": {\"id\": \"A\"}}, found none");
  return result;
}

/// [name, id]
std::int32_t read_pair(Json pair, const Vocabulary& vocabulary) {
  if (pair.as_array().size() != 2) pair.unexpected("a token and its id");
  const Json id = pair.at(1);
  const auto number = static_cast<std::int32_t>(id.as_integer(0, vocabulary.size() - 1));
  if (!vocabulary.contains(number)) id.unexpected("the id of a token");
  return number;
}

}  // namespace

PostProcessor PostProcessor::read(std::optional<Json> component, const Vocabulary& vocabulary) {
  if (!component) return {};
  const Json type = component->at("type");
  if (type.as_string() == "ByteLevel") return {};
  if (type.as_string() == "TemplateProcessing") return read_template(*component, vocabulary);
  if (type.as_string() == "RobertaProcessing" || type.as_string() == "BertProcessing")
    return {{read_pair(component->at("cls"), vocabulary)}, {read_pair(component->at("sep"), vocabulary)}};
  if (type.as_string() != "Sequence")
    type.unexpected("\"TemplateProcessing\", \"RobertaProcessing\", \"BertProcessing\", \"ByteLevel\" or \"Sequence\"",
                    Status::unsupported);
  PostProcessor all;
  for (Json step : component->at("processors").as_array()) {  // each goes around what the ones before have made
    const PostProcessor outer = read(step, vocabulary);
    all.before.insert(all.before.begin(), outer.before.begin(), outer.before.end());
    all.after.insert(all.after.end(), outer.after.begin(), outer.after.end());
  }
  return all;
}

}  // namespace cermet
