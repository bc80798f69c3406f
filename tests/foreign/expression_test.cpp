// Expressions of manifests: values, intervals, and what is refused.
#include "foreign/expression.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/error_text.hpp"

namespace cermet::foreign {
namespace {

/// Variables a, b, c are places 0, 1, 2; stride(x, 1) is 3.
std::optional<std::size_t> look_up(std::string_view name, std::span<const std::string> arguments) {
  if (name == "stride" && arguments.size() == 2 && arguments[0] == "x" && arguments[1] == "1") return 3;
  if (!arguments.empty() || name.size() != 1 || name[0] < 'a' || name[0] > 'c') return std::nullopt;
  return static_cast<std::size_t>(name[0] - 'a');
}

Expression parse(std::string_view text) { return Expression::parse(text, "m.json: grid", look_up); }
std::int64_t value(std::string_view text, std::vector<std::int64_t> variables = {7, 3, 0, 40}) {
  return parse(text).value(variables);
}
std::string error(std::string_view text) {
  return error_text([&] { parse(text); });
}

TEST(Expression, BindsAsInC) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("-a / 2"), -3);
  EXPECT_EQ(value("-a % 4"), -3);
  EXPECT_EQ(value("2 * -b"), -6);
  EXPECT_EQ(value("a % b == 1 && !c"), 1);
  EXPECT_EQ(value("a < b || a >= 7"), 1);
  EXPECT_EQ(value("a != 7"), 0);
  EXPECT_EQ(value("1 + 1 < 3 == 1"), 1);
  EXPECT_EQ(value("a > b && b > a || c == 0"), 1);
  EXPECT_EQ(value("ceil_div(a, b) * stride(x, 1)"), 120);
  EXPECT_EQ(value("round_up(a + 1, 16) + max(a, b) - min(a, b)"), 20);
  EXPECT_EQ(value("next_power_of_2(a) + next_power_of_2(8) + next_power_of_2(c)"), 17);
  EXPECT_EQ(value("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(Expression(12).value({}), 12);
}

TEST(Expression, KnowsItsVariables) {
  const Expression e = parse("a + stride(x, 1)");
  EXPECT_TRUE(e.uses(0));
  EXPECT_FALSE(e.uses(1));
  EXPECT_TRUE(e.uses(3));
}

TEST(Expression, RealNumbersDivide) {
  const std::vector<double> variables{7, 2, 0.5, 1};
  EXPECT_EQ(parse("a / b").real(variables), 3.5);
  EXPECT_EQ(parse("c * 4 + 1").real(variables), 3);
  EXPECT_EQ(parse("1 / c").real(variables), 2);
}

TEST(Expression, MistakesAreQuoted) {
  EXPECT_EQ(error("1 +"), R"(m.json: grid: expected an integer, a name or '(' at character 4 of "1 +", found the end)");
  EXPECT_EQ(error("d * 2"),
            R"(m.json: grid: expected a name that the manifest declares at character 1 of "d * 2", found "d * 2")");
  EXPECT_EQ(error("(a"), R"(m.json: grid: expected ')' at character 3 of "(a", found the end)");
  EXPECT_EQ(error("a b"), R"(m.json: grid: expected an operator or the end at character 3 of "a b", found "b")");
  EXPECT_EQ(error("1.5"), R"(m.json: grid: expected an operator after an integer at character 2 of "1.5", found ".5")");
  EXPECT_NE(error("stride(x, 2)").find("a name that the manifest declares"), std::string::npos);
  EXPECT_NE(error("stride(x,").find("the arguments of stride"), std::string::npos);
  EXPECT_NE(error("ceil_div(a)").find("2 arguments of ceil_div"), std::string::npos);
  EXPECT_NE(error("9223372036854775808").find("below 2^63"), std::string::npos);
  EXPECT_NE(error(std::string(1025, '1')).find("at most 1024 characters, found 1025"), std::string::npos);
  EXPECT_NE(error(std::string(200, '(')).find("less nesting"), std::string::npos);
  EXPECT_NE(error(std::string(200, '-') + "1").find("less nesting"), std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 200; ++i) sum += "+1";
  EXPECT_NE(error(sum).find("at most 256 operations"), std::string::npos);
  EXPECT_NE(error("").find("found the end"), std::string::npos);
}

TEST(Expression, ArithmeticThatHasNoResultIsAnError) {
  EXPECT_NE(error_text([] { value("a / c"); }).find("a divisor other than 0"), std::string::npos);
  EXPECT_NE(error_text([] { value("a % c"); }).find("a divisor other than 0"), std::string::npos);
  EXPECT_NE(error_text([] { value("9223372036854775807 + a"); }).find("below 2^63"), std::string::npos);
  EXPECT_NE(error_text([] { value("9223372036854775807 * a"); }).find("below 2^63"), std::string::npos);
  EXPECT_NE(error_text([] { value("(0 - 9223372036854775807 - 1) / -1"); }).find("below 2^63"), std::string::npos);
  EXPECT_EQ(value("(0 - 9223372036854775807 - 1) % -1"), 0);
}

TEST(Expression, ConditionsHoldForWholeIntervals) {
  const std::vector<Interval> variables{{0, 128}, {64, 64}, {1, 4}, {0, Interval::any}};
  EXPECT_TRUE(parse("a <= 128").bounds(variables).always());
  EXPECT_FALSE(parse("a <= 127").bounds(variables).always());
  EXPECT_FALSE(parse("a % 8 == 0").bounds(variables).always()) << "not for every a";
  EXPECT_TRUE(parse("b % 8 == 0").bounds(variables).always());
  EXPECT_TRUE(parse("a >= 0 && !(a > 128)").bounds(variables).always());
  EXPECT_TRUE(parse("a > 200").bounds(variables).never());
  EXPECT_EQ(parse("ceil_div(a, 32)").bounds(variables), (Interval{0, 4}));
  EXPECT_EQ(parse("round_up(a, b)").bounds(variables), (Interval{0, 128}));
  EXPECT_TRUE(error_text([&] {
                parse("b / a").bounds(variables);
              }).starts_with("division: expected a divisor that is never 0"));
}

/// What an interval says holds for values inside of it.
TEST(Expression, IntervalsContainEveryValue) {
  const char* const texts[] = {"a + b * c",
                               "a - b",
                               "a / (b + 1)",
                               "a % (b + 1)",
                               "min(a, b) * max(c, 2)",
                               "a < b",
                               "a == b || b != c",
                               "ceil_div(a, c + 1)",
                               "!(a - b)",
                               "-a * b",
                               "round_up(a, b + 1)",
                               "next_power_of_2(a + b)",
                               "(a - c) % (b + 3)"};
  std::mt19937_64 random(5);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (const char* text : texts) {
    const Expression e = parse(text);
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<Interval> intervals;
      std::vector<std::int64_t> values;
      for (int v = 0; v < 4; ++v) {
        const std::int64_t least = pick(0, 20), most = least + pick(0, 20);
        intervals.push_back({least, most});
        values.push_back(pick(least, most));
      }
      EXPECT_TRUE(e.bounds(intervals).contains(e.value(values)))
          << text << ": " << values[0] << ", " << values[1] << ", " << values[2];
    }
  }
}

}  // namespace
}  // namespace cermet::foreign
