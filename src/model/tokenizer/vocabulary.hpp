// Tokens by name and by id.
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
  /// Reads an object of name -> id, whose ids may leave holes, but only as many as keep the table in proportion to the
  /// file; or a list of pairs of name and score, whose ids are their places: of a name that stands there twice the
  /// last.
  explicit Vocabulary(Json vocab);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// Adds a token that `at` describes. Throws Error(invalid_file) where the name or the id is taken, or the id is far
  /// out of range.
  void insert(std::string_view name, std::int64_t id, Json at);

  std::optional<std::int32_t> find(std::string_view name) const;
  /// 1 + the highest id.
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }
  /// Tokens.
  std::int64_t count() const { return static_cast<std::int64_t>(ids_.size()); }
  bool contains(std::int32_t id) const {
    return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)] != nullptr;
  }
  /// Of an id that the vocabulary contains.
  const std::string& name(std::int32_t id) const { return *entries_[static_cast<std::size_t>(id)]; }
  const StringMap<std::int32_t>& ids() const { return ids_; }

 private:
  std::int64_t id_limit_;  ///< bounds the table of ids by the size of the file
  StringMap<std::int32_t> ids_;
  std::vector<const std::string*> entries_;  ///< keys of ids_, whose nodes stay where they are; null: a hole
};

}  // namespace cermet
