#include "io/json_value.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"

namespace cermet {
namespace {

TEST(JsonValue, BracesBuildObjectsOfFieldsAndArraysOfOthers) {
  const std::vector<int> sizes{1, 2};
  EXPECT_EQ((JsonValue{{"name", "a"}, {"sizes", sizes}, {"inner", {{"b", nullptr}}}}).dump(),
            R"({"name":"a","sizes":[1,2],"inner":{"b":null}})");
  EXPECT_EQ((JsonValue{"cpu", "null"}).dump(), R"(["cpu","null"])");
  EXPECT_EQ((JsonValue{{1, 2}, {3, 4}}).dump(), "[[1,2],[3,4]]");
  EXPECT_EQ((JsonValue{{"same", 1}, {"same", 2}}).dump(), R"({"same":2})");
}

TEST(JsonValue, ScalarsAreWrittenAsTheirType) {
  EXPECT_EQ((JsonValue{true, 'a' == 'b', -1, 2u, std::numeric_limits<std::uint64_t>::max(), 0.1, 3.0, 0.1f,
                       std::string("x"), std::string_view("y")})
                .dump(),
            R"([true,false,-1,2,18446744073709551615,0.1,3.0,0.10000000149011612,"x","y"])");
  EXPECT_EQ(JsonValue(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(JsonValue("\"\n\xff").dump(), "\"\\\"\\n\xef\xbf\xbd\"");
}

TEST(JsonValue, NullBecomesWhatIsAddedToIt) {
  JsonValue list, fields;
  list.push_back({{"a", 1}});
  list.back()["b"] = list.size();
  EXPECT_EQ(list.dump(), R"([{"a":1,"b":1}])");
  fields["a"] = 1;
  fields["z"] = 1;
  fields.append("m", JsonValue::array());
  fields.update({{"a", 2}, {"new", JsonValue::object()}});
  fields.erase("z");
  EXPECT_EQ(fields.dump(), R"({"a":2,"m":[],"new":{}})");
  EXPECT_EQ(fields.dump(1), "{\n \"a\": 2,\n \"m\": [],\n \"new\": {}\n}");
  EXPECT_TRUE(fields.contains("m"));
  EXPECT_FALSE(fields.contains("z"));
}

TEST(JsonValue, ReadsBackWhatItHolds) {
  const JsonValue value{{"text", "x"}, {"count", 3}, {"rate", 0.5}, {"names", {"a", "b"}}, {"yes", true}};
  EXPECT_EQ(value["text"].get<std::string>(), "x");
  EXPECT_EQ(value["count"].get<int>(), 3);
  EXPECT_EQ(value["count"].get<double>(), 3.0);
  EXPECT_EQ(value["rate"].get<double>(), 0.5);
  EXPECT_TRUE(value["yes"].get<bool>());
  EXPECT_EQ(value["names"].get<std::vector<std::string>>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_THROW(value["none"], Error);
  EXPECT_THROW(value["text"].get<double>(), Error);
  EXPECT_THROW(value["count"]["x"], Error);
}

TEST(JsonValue, TextComesBackAsItWas) {
  const std::string text = R"({"z":[1,-2,18446744073709551615,0.1,1e+300,"é"],"a":{"b":null,"c":{},"d":[]},"e":false})";
  const std::optional<JsonValue> value = JsonValue::parse(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump(), text);
  EXPECT_EQ(*value, *JsonValue::parse(text));
  JsonValue other = *value;
  other["a"]["b"] = 0;
  EXPECT_NE(*value, other);
  EXPECT_EQ(value->dump(), text);  // a copy is a copy
  EXPECT_EQ(JsonValue::parse("[1] 2"), std::nullopt);
  EXPECT_EQ(JsonValue::parse("null"), JsonValue());
}

}  // namespace
}  // namespace cermet
