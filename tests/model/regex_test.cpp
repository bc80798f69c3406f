#include "model/tokenizer/regex.hpp"

#include <gtest/gtest.h>

#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using test::expect_error;

TEST(Regex, TranslatesWhatTheDialectsReadDifferently) {
  EXPECT_EQ(translate_regex("ab"), "\\x{61}\\x{62}");
  EXPECT_EQ(translate_regex("a{,3}"), "\\x{61}{0,3}");
  EXPECT_EQ(translate_regex("a{2,3}+"), "(?:\\x{61}{2,3})+");
  EXPECT_EQ(translate_regex("(a){2}+"), "(?:(?:\\x{61}){2})+");
  EXPECT_EQ(translate_regex("a{x"), "\\x{61}\\x{7b}\\x{78}");
  EXPECT_EQ(translate_regex("^$"), "(?m:^)(?m:$)");
  EXPECT_EQ(translate_regex("\\v\\/"), "\\x{b}\\x{2f}");
  EXPECT_EQ(translate_regex("\\p{Lt}\\p{^Lt}\\P{Han}"), "\\p{Lt}\\P{Lt}\\P{sc:Han}");
  EXPECT_EQ(translate_regex("[a-c\\-_-]"), "[\\x{61}-\\x{63}\\x{2d}\\x{5f}\\x{2d}]");
  expect_error(Status::unsupported, {"at most 65536 bytes"}, [] { translate_regex(std::string(65537, 'a')); });
  EXPECT_EQ(translate_regex("a++b*?"), "\\x{61}++\\x{62}*?");
}

TEST(Regex, FindsTheLeftmostMatch) {
  const Regex regex("\\s+(?!\\S)|\\s");
  RegexMemory memory;
  const auto match = regex.find("a   b", 0, memory);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->begin, 1u);
  EXPECT_EQ(match->end, 3u);
  EXPECT_FALSE(regex.find("ab", 0, memory).has_value());
  EXPECT_TRUE(Regex("\\p{L}").find("\U00031350", 0, memory).has_value());  // which is younger than PCRE2's tables
  EXPECT_FALSE(Regex("[^\\p{L}]").find("\U00031350", 0, memory).has_value());
  EXPECT_FALSE(Regex("\\s").find("\u180E", 0, memory).has_value());  // which PCRE2 alone takes for white space
  EXPECT_TRUE(Regex::literal("(").find("a(b", 0, memory).has_value());
}

}  // namespace
}  // namespace cermet
