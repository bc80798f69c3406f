#include "model/tokenizer/vocabulary.hpp"

#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"

namespace cermet {

Vocabulary::Vocabulary(Json vocab) : id_limit_(65536 + 16 * static_cast<std::int64_t>(vocab.as_object().size())) {
  ids_.reserve(vocab.size());
  for (Json field : vocab) insert(field.key(), field.as_integer(), field);
  if (ids_.empty()) vocab.refuse("expected at least one token, found none");
}

void Vocabulary::insert(std::string_view name, std::int64_t id, Json at) {
  if (id < 0 || id >= id_limit_) at.refuse(fmt::format("token {}: expected an id from 0 to {}, found {}", quote(name), id_limit_ - 1, id));
  if (const auto old = ids_.find(name); old != ids_.end()) at.refuse(fmt::format("expected a new token, found {} again (id {})", quote(name), old->second));
  const auto slot = static_cast<std::size_t>(id);
  if (slot >= entries_.size()) entries_.resize(slot + 1);
  Entry& entry = entries_[slot];
  if (entry.name != nullptr) at.refuse(fmt::format("token {}: expected an id of its own, found {}, which is {}", quote(name), id, quote(*entry.name)));
  entry.name = &ids_.emplace(std::string(name), static_cast<std::int32_t>(id)).first->first;
  std::optional<std::string> bytes = bytes_of_name(name);
  entry.is_byte_level = bytes.has_value();
  entry.bytes = bytes ? std::move(*bytes) : std::string(name);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace cermet
