// Walks the text of one type, attribute value or operator call.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// `what` names the text in messages. Every failure throws Error(invalid_argument) that quotes it.
class TextReader {
 public:
  TextReader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  [[noreturn]] void expected(std::string_view wanted) const {
    fail(Status::invalid_argument, "{} {}: expected {} at column {}, found {}", what_, quote(text_), wanted, at_ + 1,
         at_ < text_.size() ? quote(text_.substr(at_), 20) : "the end");
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }
  /// Takes a character if it comes next, after spaces.
  bool take(char c) {
    skip_spaces();
    const bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found ? 1 : 0;
    return found;
  }
  void need(char c) {
    if (!take(c)) expected(fmt::format("'{}'", c));
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void finish() {
    skip_spaces();
    if (at_ < text_.size()) expected("nothing more");
  }

  std::string_view name(std::string_view wanted) {
    const char first = peek();
    if (!is_letter(first)) expected(wanted);
    return run([](char c) { return is_letter(c) || is_digit(c); });
  }
  std::int64_t integer(std::string_view wanted) {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) expected(fmt::format("{} below 2^63", wanted));
    if (error != std::errc()) expected(wanted);
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  /// A string in quotes, as escape() writes it.
  std::string quoted() {
    std::size_t size = 0;
    const auto text = unescape(text_.substr(at_), size);
    if (!text)
      expected("a string in quotes with its closing one, in which a backslash comes before one of \" \\\\ n t r xHH");
    at_ += size;
    return *text;
  }
  template <class Accepts>
  std::string_view run(Accepts accepts) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && accepts(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  /// One level of nesting more while the result lives; refuses more than a text needs.
  struct Level {
    explicit Level(TextReader& reader) : reader_(reader) {
      if (++reader_.depth_ > 32) reader_.expected("at most 32 levels of nesting");
    }
    ~Level() { --reader_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TextReader& reader_;
  };
  std::string_view rest() const { return text_.substr(at_); }
  void back_to(std::size_t at) { at_ = at; }
  std::size_t position() const { return at_; }

 private:
  std::string_view what_, text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace cermet
