#include "base/utf8_text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace cermet {
namespace {

using namespace std::string_literals;

std::string refusal_of(const std::string& bytes) {
  try {
    text_of_file(bytes, "t.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_file);
    return error.what();
  }
  return "none";
}

TEST(Utf8Text, TakesUtf8WithoutItsMark) {
  EXPECT_EQ(text_of_file("a\n\u00E9 \U0001F600", "t.txt"), "a\n\u00E9 \U0001F600");
  EXPECT_EQ(text_of_file("\xEF\xBB\xBFtext", "t.txt"), "text");
  EXPECT_EQ(text_of_file("", "t.txt"), "");
  EXPECT_EQ(text_of_file("a\uFEFF", "t.txt"), "a\uFEFF");  // a mark only at the start
}

TEST(Utf8Text, NamesLineAndByte) {
  EXPECT_EQ(refusal_of("a\nb\xE9"), "t.txt:2: expected text in UTF-8, found the byte 0xe9 at offset 3");
  EXPECT_EQ(refusal_of("\xC3"), "t.txt:1: expected text in UTF-8, found the byte 0xc3 at offset 0");
  EXPECT_EQ(refusal_of("a\0b\0"s),
            "t.txt:1: expected text in UTF-8, found the byte 0x00 at offset 1");  // UTF-16 without its mark
  EXPECT_EQ(refusal_of("\xED\xA0\x80"), "t.txt:1: expected text in UTF-8, found the byte 0xed at offset 0");
}

TEST(Utf8Text, NamesTheEncodingOfAMark) {
  const std::string hint =
      ": it begins with the byte order mark of UTF-16; convert it, e.g. with iconv -f UTF-16 -t UTF-8";
  EXPECT_EQ(refusal_of("\xFF\xFE"
                       "a\0"s),
            "t.txt:1: expected text in UTF-8, found the byte 0xff at offset 0" + hint);
  EXPECT_EQ(refusal_of("\xFE\xFF\0a"s), "t.txt:1: expected text in UTF-8, found the byte 0xfe at offset 0" + hint);
  EXPECT_NE(refusal_of("\xFF\xFE\0\0a\0\0\0"s).find("iconv -f UTF-32"), std::string::npos);
  EXPECT_NE(refusal_of("\0\0\xFE\xFF"s).find("iconv -f UTF-32"), std::string::npos);
}

}  // namespace
}  // namespace cermet
