#include "base/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cermet {
namespace {

TEST(Text, Quote) {
  EXPECT_EQ(quote("a\"b\\\n\x7f\xff\xc3\xa9"), "\"a\\\"b\\\\\\x0a\\x7f\\xff\u00e9\"");
  EXPECT_EQ(quote("abcdef\u00e9", 7), "\"abcdef...\"");  // cut between characters
  EXPECT_EQ(quote("abcdef\u00e9", 8), "\"abcdef\u00e9\"");
}

TEST(Text, EscapeKeepsEveryByte) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  std::size_t size = 0;
  const std::string escaped = escape(every);
  EXPECT_EQ(unescape(escaped + "\"tail", size), every);
  EXPECT_EQ(size, escaped.size());
  EXPECT_EQ(escape("a\"b\\c\n\x01"), R"("a\"b\\c\n\x01")");
  EXPECT_EQ(escape("é"), "\"é\"");
  for (const std::string_view broken :
       {"", "abc", "\"", "\"a", "\"\\", "\"\\q\"", "\"\\x1\"", "\"\\x", "\"\\xg0\"", "\"a\\\""})
    EXPECT_EQ(unescape(broken, size), std::nullopt) << broken;
}

TEST(Text, Utf8Units) {
  const auto shape = [](std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Unit unit = first_utf8_unit(text.substr(i));
      out += fmt::format("{}{} ", unit.valid ? "+" : unit.incomplete ? "?" : "-", unit.size);
      i += unit.size;
    }
    return out;
  };
  EXPECT_EQ(shape("a\u00e9\u20ac\U0001F600"), "+1 +2 +3 +4 ");
  EXPECT_EQ(shape("\xC0\x80"), "-1 -1 ");                  // overlong
  EXPECT_EQ(shape("\xE0\x80\x80"), "-1 -1 -1 ");           // overlong
  EXPECT_EQ(shape("\xED\xA0\x80"), "-1 -1 -1 ");           // surrogate
  EXPECT_EQ(shape("\xF4\x90\x80\x80"), "-1 -1 -1 -1 ");    // above U+10FFFF
  EXPECT_EQ(shape("\xF0\x9F\x98z\xE2\x82"), "-3 +1 ?2 ");  // broken off by a letter, then by the end
  // Every code point survives, whatever its length.
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Unit unit = first_utf8_unit(text);
    ASSERT_TRUE(unit.valid && unit.size == text.size() && unit.code_point == c) << static_cast<std::uint32_t>(c);
  }
}

}  // namespace
}  // namespace cermet
