// JSON that comes from outside, read strictly: bounded size, depth and number of values, no duplicate keys, and typed
// access whose errors name file, field, what was expected and what was found. A document is a flat array of values, so
// a hostile one costs at most 24 bytes per value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cermet {

/// Bounds that a document is held to before and while it is parsed.
struct JsonLimits {
  std::size_t max_bytes = std::size_t{256} << 20;  ///< of the file; at most 4 GiB - 1
  std::size_t max_values = std::size_t{8} << 20;   ///< scalars, arrays and objects together
  int max_depth = 64;                              ///< of nested arrays and objects
};

enum class JsonKind : std::uint8_t { null, boolean, integer, number, string, array, object };

struct JsonStorage;

/// A value inside a JsonDocument: two words, cheap to copy, valid as long as the document. Every accessor that does not
/// find what it was asked for throws Error(invalid_file) with one line: file, field path, what was expected, what was
/// found.
class Json {
 public:
  JsonKind kind() const;
  bool is(JsonKind kind) const { return this->kind() == kind; }

  /// The value's own key inside its object; "" for the root and for array elements.
  std::string_view key() const;
  /// A field that must be there (null counts as there). Search is linear: walk large objects instead.
  Json at(std::string_view key) const;
  /// A field that may be absent; null counts as absent.
  std::optional<Json> find(std::string_view key) const;
  /// An element that must be there; linear like at(key).
  Json at(std::size_t index) const;
  /// Number of elements or fields; 0 for scalars.
  std::size_t size() const;

  /// The value as a type, or an error. An integer is written without fraction or exponent; a number may be an integer,
  /// and no NaN or Infinity as Python has.
  std::string_view as_string() const;
  bool as_bool() const;
  std::int64_t as_integer(std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  double as_number() const;
  /// *this, checked to be an array or an object: `for (Json item : value.as_array())`.
  Json as_array() const;
  Json as_object() const;

  /// Where the value is: "model.merges[3]", "" for the root.
  std::string path() const;
  /// The value in a message: a scalar itself, "an array of 3", "an object".
  std::string describe() const;
  /// Throws "FILE: PATH: expected EXPECTED, found VALUE".
  [[noreturn]] void unexpected(std::string_view expected, Status status = Status::invalid_file) const;
  /// Throws "FILE: PATH: MESSAGE".
  [[noreturn]] void refuse(std::string_view message, Status status = Status::invalid_file) const;

  /// Walks elements or fields in the order of the file; empty for scalars.
  class Iterator {
   public:
    Json operator*() const { return Json(storage_, index_); }
    Iterator& operator++();
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    friend class Json;
    Iterator(const JsonStorage* storage, std::uint32_t index) : storage_(storage), index_(index) {}
    const JsonStorage* storage_;
    std::uint32_t index_;
  };
  Iterator begin() const;
  Iterator end() const;

 private:
  friend class JsonDocument;
  Json(const JsonStorage* storage, std::uint32_t index) : storage_(storage), index_(index) {}
  const JsonStorage* storage_;
  std::uint32_t index_;
};

/// A parsed document, which owns what its Json values refer to.
class JsonDocument {
 public:
  /// Reads and parses a regular file. Throws Error(io) where it cannot be read, Error(invalid_file) where it breaks
  /// JSON or a limit.
  static JsonDocument read(const std::filesystem::path& file, const JsonLimits& limits = {});
  /// Parses text; `name` stands for the file in messages.
  static JsonDocument parse(std::string_view text, std::string name, const JsonLimits& limits = {});

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  Json root() const { return Json(storage_.get(), 0); }
  const std::string& name() const;

 private:
  explicit JsonDocument(std::unique_ptr<const JsonStorage> storage);
  std::unique_ptr<const JsonStorage> storage_;
};

}  // namespace cermet
