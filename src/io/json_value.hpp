// JSON that is built or edited and then written. The JSON library stays behind this header, because each file that sees
// it pays seconds of compile time.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cermet {

/// Any JSON value, owned; objects keep the order in which their keys were set. Braces build one: `JsonValue{{"name",
/// name}, {"sizes", sizes}}` is an object, because every element is a pair whose first half is a string; other lists
/// are arrays. Access to what is not there, or is of another kind, is an Error(internal): JSON that comes from outside
/// is read by JsonDocument.
class JsonValue {
 public:
  JsonValue(std::nullptr_t = nullptr) noexcept;
  JsonValue(std::same_as<bool> auto value) : JsonValue(Boolean{value}) {}
  JsonValue(std::signed_integral auto value) : JsonValue(Signed{value}) {}
  JsonValue(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
      : JsonValue(Unsigned{value}) {}
  JsonValue(double value);
  JsonValue(const char* text);
  JsonValue(std::string_view text);
  JsonValue(std::string text);
  template <class T>
  JsonValue(const std::vector<T>& elements) : JsonValue(array()) {
    for (const T& element : elements) push_back(element);
  }
  JsonValue(std::initializer_list<JsonValue> elements);
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  static JsonValue array();
  static JsonValue object();
  /// Nothing where the text is not JSON.
  static std::optional<JsonValue> parse(std::string_view text);

  bool is_null() const { return !node_; }
  bool is_string() const;
  bool is_object() const;
  /// Elements or fields; 0 for scalars.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  /// The value as bool, number (an integer may be asked for as a floating-point number), std::string or std::vector of
  /// these.
  template <class T>
  T get() const {
    if constexpr (std::same_as<T, bool>) return boolean();
    else if constexpr (std::integral<T>) return static_cast<T>(integer());
    else if constexpr (std::floating_point<T>) return static_cast<T>(number());
    else if constexpr (std::same_as<T, std::string>) return text();
    else {
      T elements;
      for (const JsonValue& element : *this) elements.push_back(element.get<typename T::value_type>());
      return elements;
    }
  }

  /// The elements of an array.
  const JsonValue* begin() const;
  const JsonValue* end() const { return begin() + size(); }
  JsonValue& back();
  /// Makes null an array.
  void push_back(JsonValue element);

  /// The fields of an object.
  const std::vector<std::pair<std::string, JsonValue>>& items() const;
  bool contains(std::string_view key) const;
  const JsonValue& operator[](std::string_view key) const;
  /// Adds the field where it is not there, and makes null an object. Setting a field may move the others.
  JsonValue& operator[](std::string_view key);
  /// Adds a field whose key is known to be new, in constant time.
  void append(std::string key, JsonValue value);
  void erase(std::string_view key);
  /// Sets every field of another object.
  void update(const JsonValue& other);

  /// JSON text: one line, or a line for each value, indented by that many spaces a level. Bytes that are not UTF-8
  /// become U+FFFD.
  std::string dump(int indent = -1) const;

  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  struct Node;
  struct Boolean {
    bool value;
  };
  struct Signed {
    std::int64_t value;
  };
  struct Unsigned {
    std::uint64_t value;
  };
  explicit JsonValue(Boolean value);
  explicit JsonValue(Signed value);
  explicit JsonValue(Unsigned value);
  explicit JsonValue(Node&& node);
  template <class T>
  const T& as() const;
  template <class T>
  T& made();

  bool boolean() const;
  std::int64_t integer() const;
  double number() const;
  const std::string& text() const;

  std::unique_ptr<Node> node_;  ///< null: JSON's null
};

}  // namespace cermet
