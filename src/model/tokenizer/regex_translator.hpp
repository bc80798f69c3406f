// The translation of one regular expression from Oniguruma's Ruby syntax to PCRE2's: its state and steps. Callers use
// translate_regex (regex.hpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {

class RegexTranslator {
 public:
  explicit RegexTranslator(std::string_view pattern) : pattern_(pattern) {}
  std::string run();

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(Status::unsupported,
         "expected an expression in the common part of Oniguruma and PCRE2, found {} at offset {} of {}", what, at_,
         quote(pattern_));
  }
  bool done() const { return at_ == pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character();
  char32_t take_hexadecimal(std::size_t least, std::size_t most);
  std::string property();
  std::optional<char32_t> escaped_character();
  std::optional<std::string> escaped_set(bool in_class);
  void escape();
  void character_class();
  void class_item(bool first);
  void open_group();
  void close_group();
  void quantifier();
  bool interval();
  void atom(std::string_view text) {
    atom_ = out_.size();
    out_ += text;
  }
  void assertion(std::string_view text) {
    atom_.reset();
    out_ += text;
  }
  static std::string code_point(char32_t c) { return fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(c)); }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
  std::optional<std::size_t> atom_;  ///< where in out_ the atom starts that a quantifier would repeat
  std::vector<std::size_t> groups_;  ///< starts of the open groups in out_
};

}  // namespace cermet
