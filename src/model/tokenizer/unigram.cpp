#include "model/tokenizer/unigram.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace cermet {
namespace {

constexpr double unknown_penalty = 10;  // below the lowest score of a token

}  // namespace

Unigram::Unigram(Json model, const Vocabulary& vocabulary) {
  double lowest = std::numeric_limits<double>::infinity();
  for (Json pair : model.at("vocab").as_array()) {
    scores_.push_back(pair.at(1).as_number());
    lowest = std::min(lowest, scores_.back());
  }
  unknown_score_ = lowest - unknown_penalty;
  if (const auto unknown = model.find("unk_id"))
    unknown_ = static_cast<std::int32_t>(unknown->as_integer(0, std::ssize(scores_) - 1));
  if (const auto fallback = model.find("byte_fallback")) byte_fallback_ = fallback->as_bool();
  for (unsigned byte = 0; byte < 256; ++byte)
    bytes_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  std::vector<std::string_view> texts;
  for (const auto& [name, id] : vocabulary.ids()) texts.push_back(name);
  std::ranges::sort(texts);
  for (const std::string_view text : texts) ids_.push_back(*vocabulary.find(text));
  trie_ = ByteTrie(texts);
}

/// Leaves at each character's end the best token that ends there. On ties the one that was met first, which is the
/// longest.
void Unigram::find_best(std::string_view piece, Workspace& workspace) const {
  auto& nodes = workspace.nodes;
  nodes.assign(piece.size() + 1, {0, -1, 0});
  for (std::size_t begin = 0; begin < piece.size();) {
    const double before = nodes[begin].score;
    const std::size_t character = first_utf8_unit(piece.substr(begin)).size;
    const auto offer = [&](std::size_t size, double score, std::int32_t id) {
      Workspace::Node& node = nodes[begin + size];
      if (node.begin < 0 || before + score > node.score) node = {before + score, static_cast<std::int64_t>(begin), id};
    };
    bool known = false;
    trie_.for_prefixes(piece.substr(begin), [&](std::size_t size, std::int32_t index) {
      const std::int32_t id = ids_[static_cast<std::size_t>(index)];
      offer(size, scores_[static_cast<std::size_t>(id)], id);
      known = known || size == character;
    });
    if (!known) {
      if (!unknown_)
        fail(Status::unsupported, "text: expected characters of the tokenizer, which has no unk_id, found {}",
             quote(piece.substr(begin, character)));
      offer(character, unknown_score_, *unknown_);
    }
    begin += character;
  }
}

/// Ids of a run that no token covers, in reverse.
void Unigram::append_unknown(std::string_view text, std::vector<std::int32_t>& backwards) const {
  if (const ByteTrie::Found found = trie_.longest(text); found.size == text.size())
    return backwards.push_back(ids_[static_cast<std::size_t>(found.index)]);
  const auto byte_id = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (!byte_fallback_ || std::ranges::any_of(text, [&](char byte) { return byte_id(byte) < 0; }))
    return backwards.push_back(*unknown_);
  for (auto byte = text.rbegin(); byte != text.rend(); ++byte) backwards.push_back(byte_id(*byte));
}

void Unigram::encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const {
  if (piece.empty()) return;
  find_best(piece, workspace);
  auto& backwards = workspace.backwards;
  backwards.clear();
  for (std::size_t end = piece.size(); end > 0;) {
    std::size_t begin = end;
    while (begin > 0 && workspace.nodes[begin].id == unknown_)
      begin = static_cast<std::size_t>(workspace.nodes[begin].begin);
    if (begin < end) append_unknown(piece.substr(begin, end - begin), backwards);
    if (begin > 0) {
      backwards.push_back(workspace.nodes[begin].id);
      begin = static_cast<std::size_t>(workspace.nodes[begin].begin);
    }
    end = begin;
  }
  ids.insert(ids.end(), backwards.rbegin(), backwards.rend());
}

}  // namespace cermet
