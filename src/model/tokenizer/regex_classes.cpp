// Escapes and classes of regular expressions, from Oniguruma's Ruby syntax to PCRE2's.
#include <algorithm>
#include <array>
#include <cctype>

#include "model/tokenizer/regex_translator.hpp"

namespace cermet {
namespace {

// Members of a class, without brackets. PCRE2's own \s has U+180E besides, and its \w lacks marks and letter-like
// symbols.
constexpr std::string_view space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_space =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// What \w, \W and \b take for a part of a word outside brackets: superscript digits and fractions of Latin-1 too, by an
// accident of Oniguruma's tables.
constexpr std::string_view word_outside_brackets =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view hexadecimal = "0-9A-Fa-f";

struct NewMembers {
  std::string_view category, ranges;
};
#define PROPERTY(name, ranges) {name, ranges},
constexpr auto new_members = std::to_array<NewMembers>({
#include "model/tokenizer/regex_properties.inc"
});
#undef PROPERTY

/// Inside a class: characters of a category ("L", "Lu") that came after PCRE2's tables and that the library knows.
std::string newer_members(std::string_view category) {
  std::string members;
  for (const NewMembers& each : new_members)
    if (each.category.starts_with(category)) members += each.ranges;
  return members;
}

std::string newer_words() { return newer_members("L") + newer_members("M") + newer_members("Nd"); }

}  // namespace

char32_t RegexTranslator::take_hexadecimal(std::size_t least, std::size_t most) {
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
std::string RegexTranslator::property() {
  static constexpr std::array<std::string_view, 37> categories = {
      "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe",
      "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn"};
  const std::size_t close = pattern_.find('}', at_);
  if (close == std::string_view::npos) refuse("a property without its end");
  const std::string_view name = pattern_.substr(at_, close - at_);
  const bool plain = !name.empty() &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!plain) refuse(fmt::format("property {}", quote(name)));
  at_ = close + 1;
  const bool category = std::find(categories.begin(), categories.end(), name) != categories.end();
  return (category ? "{" : "{sc:") + std::string(name) + "}";
}

/// After a backslash: a single character, or nothing (and nothing taken).
std::optional<char32_t> RegexTranslator::escaped_character() {
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
std::optional<std::string> RegexTranslator::escaped_set(bool in_class) {
  const auto set = [&](std::string_view members, bool negated) {
    if (in_class && !negated) return std::string(members);
    return fmt::format("[{}{}]", negated ? "^" : "", members);
  };
  const auto category = [&](const std::string& name, bool negated) {
    const std::string members = newer_members(std::string_view(name).substr(1, name.size() - 2));
    // Inside a class what is no member cannot be taken from the others: there the newer ones stay.
    if (members.empty() || (in_class && negated)) return (negated ? "\\P" : "\\p") + name;
    return set("\\p" + name + members, negated);
  };
  if (take("p{^")) return category(property(), true);
  if (take("p{")) return category(property(), false);
  if (take("P{")) return category(property(), true);
  if (take("d")) return category("{Nd}", false);
  if (take("D")) return category("{Nd}", true);
  if (take("s")) return set(space, false);
  if (take("S")) return set(not_space, false);
  if (take("w")) return set(std::string(in_class ? word : word_outside_brackets) + newer_words(), false);
  if (take("h")) return set(hexadecimal, false);
  if (!in_class && take("W")) return set(std::string(word_outside_brackets) + newer_words(), true);
  if (!in_class && take("H")) return set(hexadecimal, true);
  return std::nullopt;
}

void RegexTranslator::escape() {
  ++at_;
  static const std::string words = std::string(word_outside_brackets) + newer_words();
  static const std::string boundary = fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", words);
  static const std::string no_boundary = fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", words);
  if (take("b")) return assertion(boundary);
  if (take("B")) return assertion(no_boundary);
  if (take("A")) return assertion("\\A");
  if (take("z")) return assertion("\\z");
  if (take("Z")) return assertion("\\Z");
  if (const auto c = escaped_character()) return atom(code_point(*c));
  if (const auto set = escaped_set(false)) return atom(*set);
  refuse(fmt::format("\\{}", pattern_[at_]));
}

void RegexTranslator::character_class() {
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
void RegexTranslator::class_item(bool first) {
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

}  // namespace cermet
