// Oniguruma's Ruby syntax to PCRE2's. What both read alike passes; what they read differently is rewritten or refused by name.
#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/tokenizer/regex.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_pattern = 65536;

// Members of a class, without brackets. PCRE2's own \s has U+180E besides, and its \w lacks marks and letter-like symbols.
constexpr std::string_view space = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_space =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// What \w, \W and \b take for a part of a word outside brackets: superscript digits and fractions of Latin-1 too, by an accident of Oniguruma's tables.
constexpr std::string_view word_outside_brackets =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view hexadecimal = "0-9A-Fa-f";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}
  std::string run();

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(Status::unsupported, "expected an expression in the common part of Oniguruma and PCRE2, found {} at offset {} of {}", what, at_, quote(pattern_));
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

std::string Translator::run() {
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

char32_t Translator::take_character() {
  const Utf8Unit unit = first_utf8_unit(pattern_.substr(at_));
  if (!unit.valid) refuse("broken UTF-8");
  at_ += unit.size;
  return unit.code_point;
}

char32_t Translator::take_hexadecimal(std::size_t least, std::size_t most) {
  char32_t value = 0;
  std::size_t digits = 0;
  for (; digits < most && !done() && std::isxdigit(static_cast<unsigned char>(pattern_[at_])); ++digits, ++at_) {
    const int c = std::tolower(static_cast<unsigned char>(pattern_[at_]));
    value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  if (digits < least || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) refuse("a broken code point");
  return value;
}

/// After "\p{" or "\P{", up to and with the brace: a general category or a script.
std::string Translator::property() {
  static constexpr std::array<std::string_view, 37> categories = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
                                                                  "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
                                                                  "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn"};
  const std::size_t close = pattern_.find('}', at_);
  if (close == std::string_view::npos) refuse("a property without its end");
  const std::string_view name = pattern_.substr(at_, close - at_);
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!plain) refuse(fmt::format("property {}", quote(name)));
  at_ = close + 1;
  const bool category = std::find(categories.begin(), categories.end(), name) != categories.end();
  return (category ? "{" : "{sc:") + std::string(name) + "}";
}

/// After a backslash: a single character, or nothing (and nothing taken).
std::optional<char32_t> Translator::escaped_character() {
  if (done()) refuse("a backslash at the end");
  static constexpr std::string_view letters = "tnrfvae", meanings = "\t\n\r\f\v\a\x1b";
  if (const std::size_t i = letters.find(pattern_[at_]); i != std::string_view::npos) {
    ++at_;
    return static_cast<unsigned char>(meanings[i]);
  }
  if (take("x{")) {
    const char32_t c = take_hexadecimal(1, 8);
    if (!take("}")) refuse("a code point without its end");
    return c;
  }
  if (take("u")) return take_hexadecimal(4, 4);
  if (take("x")) {
    const char32_t c = take_hexadecimal(1, 2);
    if (c >= 0x80) refuse("a byte above 0x7f");
    return c;
  }
  if (std::isalnum(static_cast<unsigned char>(pattern_[at_]))) return std::nullopt;
  return take_character();
}

/// After a backslash: a set of characters, as members of a class or as a class; or nothing (and nothing taken).
std::optional<std::string> Translator::escaped_set(bool in_class) {
  const auto set = [&](std::string_view members, bool negated) {
    if (in_class && !negated) return std::string(members);
    return fmt::format("[{}{}]", negated ? "^" : "", members);
  };
  if (take("p{^")) return "\\P" + property();
  if (take("p{")) return "\\p" + property();
  if (take("P{")) return "\\P" + property();
  if (take("d")) return "\\p{Nd}";
  if (take("D")) return "\\P{Nd}";
  if (take("s")) return set(space, false);
  if (take("S")) return set(not_space, false);
  if (take("w")) return set(in_class ? word : word_outside_brackets, false);
  if (take("h")) return set(hexadecimal, false);
  if (!in_class && take("W")) return set(word_outside_brackets, true);
  if (!in_class && take("H")) return set(hexadecimal, true);
  return std::nullopt;
}

void Translator::escape() {
  ++at_;
  static const std::string boundary = fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word_outside_brackets);
  static const std::string no_boundary = fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word_outside_brackets);
  if (take("b")) return assertion(boundary);
  if (take("B")) return assertion(no_boundary);
  if (take("A")) return assertion("\\A");
  if (take("z")) return assertion("\\z");
  if (take("Z")) return assertion("\\Z");
  if (const auto c = escaped_character()) return atom(code_point(*c));
  if (const auto set = escaped_set(false)) return atom(*set);
  refuse(fmt::format("\\{}", pattern_[at_]));
}

void Translator::character_class() {
  atom_ = out_.size();
  ++at_;
  out_ += take("^") ? "[^" : "[";
  if (next_is("]")) refuse("an empty class");
  for (bool first = true; !take("]"); first = false) {
    if (done()) refuse("a class without its end");
    class_item(first);
  }
  out_ += ']';
}

/// A character, a range or a set inside brackets.
void Translator::class_item(bool first) {
  if (next_is("[")) refuse("a class inside a class");
  if (next_is("&&")) refuse("an intersection of classes");
  const auto character = [&]() -> std::optional<char32_t> {
    if (!take("\\")) return take_character();
    if (take("b")) return U'\b';
    return escaped_character();
  };
  if (!first && next_is("-") && !next_is("-]")) refuse("a hyphen that may or may not be a range");
  const std::optional<char32_t> low = character();
  if (!low) {
    const auto set = escaped_set(true);
    if (!set) refuse(fmt::format("\\{} inside a class", pattern_[at_]));
    out_ += *set;
    return;
  }
  out_ += code_point(*low);
  if (!next_is("-") || next_is("-]")) return;
  ++at_;
  if (next_is("[")) refuse("a class inside a class");
  const std::optional<char32_t> high = done() ? std::nullopt : character();
  if (!high || *high < *low) refuse("a broken range");
  out_ += fmt::format("-{}", code_point(*high));
}

void Translator::open_group() {
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

void Translator::close_group() {
  if (groups_.empty()) refuse("an end of no group");
  ++at_;
  out_ += ')';
  atom_ = groups_.back();
  groups_.pop_back();
}

/// One of * + ?, with ? (lazy) or + (possessive) after it.
void Translator::quantifier() {
  if (!atom_) refuse("a quantifier without anything to repeat");
  out_ += pattern_[at_++];
  if (next_is("?") || next_is("+")) out_ += pattern_[at_++];
  if (next_is("*") || next_is("+") || next_is("?")) refuse("a quantifier of a quantifier");
  atom_.reset();
}

/// {n}, {n,}, {n,m}, {,m}; false (and nothing taken) where the brace is a plain character. A plus after it repeats it: it is not possessive.
bool Translator::interval() {
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
  if (low.size() > 4 || high.size() > 4 || (!low.empty() && !high.empty() && std::stoi(low) > std::stoi(high))) refuse("such a count");
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

}  // namespace

std::string translate_regex(std::string_view pattern) {
  // PCRE2 compiles no more than this many bytes either; and the translation of nested intervals takes quadratic time.
  if (pattern.size() > longest_pattern) fail(Status::unsupported, "expected an expression of at most {} bytes, found {}", longest_pattern, pattern.size());
  return Translator(pattern).run();
}

}  // namespace cermet
