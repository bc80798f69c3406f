#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(Rules, ListsThoseOfAClass) {
  const auto all = run_cermet("rules --json").json()["rules"],
             some = run_cermet("rules associative --json").json()["rules"];
  EXPECT_GT(all.size(), 149u);
  ASSERT_GT(some.size(), 10u);
  EXPECT_LT(some.size(), all.size());
  for (const auto& rule : some) EXPECT_EQ(rule["class"], "associative") << rule;
  const nlohmann::json exact = run_cermet("rules exact --json").json()["rules"];
  for (const auto& rule : exact) EXPECT_EQ(rule["rounding"], "exact") << rule;
}

TEST(Rules, ShowsPatternAndCondition) {
  const std::string text = run_cermet("rules square-of-sqrt").out;
  EXPECT_NE(text.find("square(sqrt(x)) -> x   when x >= 0"), std::string::npos) << text;
  EXPECT_NE(text.find("1 rules"), std::string::npos) << text;
}

TEST(Rules, RefusesNamesThatThereAreNot) { expect_mistake("rules no-such-rule", {"WHICH", "\"no-such-rule\""}); }

}  // namespace
}  // namespace cermet::test
