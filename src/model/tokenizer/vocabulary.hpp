// Tokens by name and by id, with the bytes each stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/json_file.hpp"

namespace cermet {

/// Lets a map keyed by std::string be asked with a std::string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

class Vocabulary {
 public:
  /// Reads an object of name -> id. Ids may leave holes, but only as many as keep the table in proportion to the file.
  explicit Vocabulary(Json vocab);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// Adds a token that `at` describes. Throws Error(invalid_file) where the name or the id is taken, or the id is far out of range.
  void insert(std::string_view name, std::int64_t id, Json at);

  std::optional<std::int32_t> find(std::string_view name) const;
  /// 1 + the highest id.
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }
  bool contains(std::int32_t id) const { return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].name != nullptr; }

  /// Of an id that the vocabulary contains.
  const std::string& name(std::int32_t id) const { return *entries_[static_cast<std::size_t>(id)].name; }
  /// What the token adds to the text: the bytes its name spells, or the name itself where that spells no bytes.
  const std::string& bytes(std::int32_t id) const { return entries_[static_cast<std::size_t>(id)].bytes; }
  /// The name spells bytes.
  bool is_byte_level(std::int32_t id) const { return entries_[static_cast<std::size_t>(id)].is_byte_level; }
  /// Makes the token stand for other bytes than its name spells.
  void set_bytes(std::int32_t id, std::string_view bytes) { entries_[static_cast<std::size_t>(id)].bytes = bytes; }

 private:
  struct Entry {
    const std::string* name = nullptr;  ///< the key in ids_, whose nodes stay where they are; null: a hole
    std::string bytes;
    bool is_byte_level = false;
  };
  std::int64_t id_limit_;  ///< bounds the table of ids by the size of the file
  StringMap<std::int32_t> ids_;
  std::vector<Entry> entries_;
};

}  // namespace cermet
