// One line of a graph's text form.
#pragma once

#include <charconv>

#include "base/error.hpp"
#include "graph/plain_name.hpp"
#include "op/schema/type_text.hpp"

namespace cermet {

/// Walks one line.
class TextLine {
 public:
  TextLine(std::string_view text, std::size_t number) : text_(text), number_(number) { skip_spaces(); }

  /// Hands the next `size` bytes to a parser of types or values.
  template <class Parser>
  auto parse(Parser parser, std::size_t size) try {
    auto value = parser(text_.substr(at_, size));
    move(size);
    return value;
  } catch (const Error& error) {
    throw Error(error.status(), fmt::format("graph text, line {}: {}", number_, error.what()));
  }

  [[noreturn]] void expected(std::string_view wanted) const {
    fail(Status::invalid_argument, "graph text, line {}: expected {} at column {}, found {}", number_, wanted, at_ + 1,
         at_ < text_.size() ? quote(text_.substr(at_), 40) : "the end of the line");
  }
  bool at_end() const { return at_ == text_.size(); }
  bool starts_with(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_spaces();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) expected(fmt::format("'{}'", token));
  }
  /// A word of its own: followed by a space or the end.
  bool take_word(std::string_view word) {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with(word) && (rest.size() == word.size() || rest[word.size()] == ' ') && take(word);
  }
  /// A plain or quoted name.
  std::string name(std::string_view wanted) {
    if (text_.substr(at_).starts_with('"')) {
      std::size_t size = 0;
      const auto name = unescape(text_.substr(at_), size);
      if (!name) expected(fmt::format("{} with its closing quote", wanted));
      move(size);
      return *name;
    }
    const auto end = std::find_if_not(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.end(), is_plain);
    const auto size = static_cast<std::size_t>(end - text_.begin()) - at_;
    if (size == 0) expected(wanted);
    return std::string(slice(size));
  }
  std::string value_name() {
    if (!text_.substr(at_).starts_with('%')) expected("a value such as %x");
    ++at_;
    return name("a value's name");
  }
  Symbol symbol() {
    const auto end = std::find_if(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.end(),
                                  [](char c) { return c == ' ' || c == ':'; });
    return parse([](std::string_view text) { return Symbol(text); },
                 static_cast<std::size_t>(end - text_.begin()) - at_);
  }
  TensorType type() {
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) expected("a type such as bf16[T, 64]");
    return parse([&](std::string_view text) { return parse_tensor_type(text); }, end + 1 - at_);
  }
  AttributeValue attribute_value() {
    return parse([&](std::string_view text) { return parse_attribute_value(text); }, value_size());
  }
  std::int64_t integer() {
    const std::string_view rest = text_.substr(at_);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) expected("an integer");
    move(static_cast<std::size_t>(end - rest.data()));
    return value;
  }
  std::size_t number() const { return number_; }

 private:
  /// Bytes up to the comma, brace or end after a value; what brackets and quotes hold belongs to it.
  std::size_t value_size() const {
    const std::string_view rest = text_.substr(at_);
    std::size_t size = 0, string = 0;
    for (int depth = 0; size < rest.size() && (depth > 0 || (rest[size] != ',' && rest[size] != '}')); ++size) {
      if (rest[size] == '[') ++depth;
      if (rest[size] == ']') --depth;
      if (rest[size] != '"') continue;
      if (!unescape(rest.substr(size), string)) expected("a string with its closing quote");
      size += string - 1;
    }
    while (size > 0 && rest[size - 1] == ' ') --size;
    return size;
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r", at_), text_.size()); }
  void move(std::size_t size) {
    at_ += size;
    skip_spaces();
  }
  std::string_view slice(std::size_t size) {
    const std::string_view s = text_.substr(at_, size);
    move(size);
    return s;
  }
  std::string_view text_;
  std::size_t number_;
  std::size_t at_ = 0;
};

}  // namespace cermet
