// Oniguruma's Ruby syntax to PCRE2's. What both read alike passes; what they read differently is rewritten or refused
// by name.
#include <algorithm>
#include <array>
#include <cctype>

#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/regex_translator.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_pattern = 65536;

}  // namespace

std::string RegexTranslator::run() {
  if (next_is("(*")) refuse("a callout");
  while (!done()) {
    const char c = pattern_[at_];
    if (c == '\\') {
      escape();
    } else if (c == '[') {
      character_class();
    } else if (c == '(') {
      open_group();
    } else if (c == ')') {
      close_group();
    } else if (c == '*' || c == '+' || c == '?') {
      quantifier();
    } else if (c == '{' && interval()) {
      continue;
    } else if (take("|")) {
      assertion("|");
    } else if (take("^")) {
      assertion("(?m:^)");
    } else if (take("$")) {
      assertion("(?m:$)");
    } else if (take(".")) {
      atom(".");
    } else {
      atom(code_point(take_character()));
    }
  }
  if (!groups_.empty()) refuse("a group without its end");
  return std::move(out_);
}

char32_t RegexTranslator::take_character() {
  const Utf8Unit unit = first_utf8_unit(pattern_.substr(at_));
  if (!unit.valid) refuse("broken UTF-8");
  at_ += unit.size;
  return unit.code_point;
}

void RegexTranslator::open_group() {
  static constexpr std::array<std::string_view, 8> same = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:"};
  const std::size_t start = out_.size();
  if (take("(?#")) {
    const std::size_t close = pattern_.find(')', at_);
    if (close == std::string_view::npos) refuse("a comment without its end");
    at_ = close + 1;
    return;
  }
  if (at_ == 0 && take("(?i)")) {  // elsewhere the two disagree about how far it reaches
    out_ += "(?i)";
    return;
  }
  const auto known = std::find_if(same.begin(), same.end(), [&](std::string_view s) { return next_is(s); });
  if (known != same.end()) {
    out_ += *known;
    at_ += known->size();
  } else if (next_is("(?")) {
    refuse(fmt::format("group {}", quote(pattern_.substr(at_, 4))));
  } else {
    out_ += "(?:";  // nothing refers to groups
    ++at_;
  }
  groups_.push_back(start);
  atom_.reset();
}

void RegexTranslator::close_group() {
  if (groups_.empty()) refuse("an end of no group");
  ++at_;
  out_ += ')';
  atom_ = groups_.back();
  groups_.pop_back();
}

/// One of * + ?, with ? (lazy) or + (possessive) after it.
void RegexTranslator::quantifier() {
  if (!atom_) refuse("a quantifier without anything to repeat");
  out_ += pattern_[at_++];
  if (next_is("?") || next_is("+")) out_ += pattern_[at_++];
  if (next_is("*") || next_is("+") || next_is("?")) refuse("a quantifier of a quantifier");
  atom_.reset();
}

/// {n}, {n,}, {n,m}, {,m}; false (and nothing taken) where the brace is a plain character. A plus after it repeats it:
/// it is not possessive.
bool RegexTranslator::interval() {
  std::size_t i = at_ + 1;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < pattern_.size() && std::isdigit(static_cast<unsigned char>(pattern_[i]))) ++i;
    return std::string(pattern_.substr(begin, i - begin));
  };
  const std::string low = digits();
  const bool comma = i < pattern_.size() && pattern_[i] == ',';
  if (comma) ++i;
  const std::string high = comma ? digits() : low;
  if ((low.empty() && high.empty()) || i == pattern_.size() || pattern_[i] != '}') return false;
  if (!atom_) refuse("a quantifier without anything to repeat");
  if (low.size() > 4 || high.size() > 4 || (!low.empty() && !high.empty() && std::stoi(low) > std::stoi(high)))
    refuse("such a count");
  at_ = i + 1;
  out_ += "{" + (low.empty() ? "0" : low) + (comma ? "," : "") + (comma ? high : "") + "}";
  if (next_is("?")) {
    if (!comma) refuse("{n}?");
    out_ += '?';
    ++at_;
  } else if (take("+")) {
    out_.insert(*atom_, "(?:");
    out_ += ")+";
  }
  if (next_is("*") || next_is("+") || next_is("?") || next_is("{")) refuse("a quantifier of a quantifier");
  atom_.reset();
  return true;
}

std::string translate_regex(std::string_view pattern) {
  // PCRE2 compiles no more than this many bytes either; and the translation of nested intervals takes quadratic time.
  if (pattern.size() > longest_pattern)
    fail(Status::unsupported, "expected an expression of at most {} bytes, found {}", longest_pattern, pattern.size());
  return RegexTranslator(pattern).run();
}

}  // namespace cermet
