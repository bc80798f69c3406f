#include "model/tokenizer/vocabulary.hpp"

#include "base/text.hpp"

namespace cermet {

Vocabulary::Vocabulary(Json vocab) : id_limit_(65536 + 16 * static_cast<std::int64_t>(vocab.size())) {
  ids_.reserve(vocab.size());
  if (vocab.is(JsonKind::array)) {
    for (Json pair : vocab) {
      if (pair.as_array().size() != 2) pair.unexpected("a token and its score");
      const auto id = static_cast<std::int32_t>(entries_.size());
      const auto place = ids_.insert_or_assign(std::string(pair.at(std::size_t{0}).as_string()), id).first;
      entries_.push_back(&place->first);
    }
  } else {
    for (Json field : vocab.as_object()) insert(field.key(), field.as_integer(), field);
  }
  if (ids_.empty()) vocab.refuse("expected at least one token, found none");
}

void Vocabulary::insert(std::string_view name, std::int64_t id, Json at) {
  if (id < 0 || id >= id_limit_)
    at.refuse(fmt::format("token {}: expected an id from 0 to {}, found {}", quote(name), id_limit_ - 1, id));
  if (const auto old = ids_.find(name); old != ids_.end())
    at.refuse(fmt::format("expected a new token, found {} again (id {})", quote(name), old->second));
  const auto slot = static_cast<std::size_t>(id);
  if (slot >= entries_.size()) entries_.resize(slot + 1);
  if (entries_[slot] != nullptr)
    at.refuse(fmt::format("token {}: expected an id of its own, found {}, which is {}", quote(name), id,
                          quote(*entries_[slot])));
  entries_[slot] = &ids_.emplace(std::string(name), static_cast<std::int32_t>(id)).first->first;
}

std::optional<std::int32_t> Vocabulary::find(std::string_view name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cermet
