#include "op/schema/attributes.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace cermet {
namespace {

TEST(AttributeValue, Text) {
  EXPECT_EQ(to_string(AttributeValue(true)), "true");
  EXPECT_EQ(to_string(AttributeValue(std::int64_t{-8})), "-8");
  EXPECT_EQ(to_string(AttributeValue(1e-5)), "1e-05");
  EXPECT_EQ(to_string(AttributeValue(1.0)), "1.0");  // a float stays one when it is read back
  EXPECT_EQ(to_string(AttributeValue(-0.25)), "-0.25");
  EXPECT_EQ(to_string(AttributeValue(std::string("silu"))), "\"silu\"");
  EXPECT_EQ(to_string(AttributeValue(Ints{1, -2, 3})), "[1, -2, 3]");
  EXPECT_EQ(to_string(AttributeValue(Ints{})), "[]");
}

TEST(AttributeValue, TypeNames) {
  EXPECT_EQ(type_name(AttributeValue(false)), "bool");
  EXPECT_EQ(type_name(AttributeValue(std::int64_t{0})), "int");
  EXPECT_EQ(type_name(AttributeValue(0.0)), "float");
  EXPECT_EQ(type_name(AttributeValue(std::string())), "string");
  EXPECT_EQ(type_name(AttributeValue(Ints{})), "ints");
}

TEST(Attributes, AreSortedAndReplaced) {
  Attributes attributes{{"k", std::int64_t{1}}, {"axis", std::int64_t{2}}, {"eps", 0.5}};
  attributes.set("k", std::int64_t{7});
  ASSERT_EQ(attributes.size(), 3u);
  EXPECT_EQ(attributes.begin()->first, "axis");
  EXPECT_EQ(attributes.integer("k"), 7);
  EXPECT_EQ(attributes.number("eps"), 0.5);
  EXPECT_EQ(attributes.find("absent"), nullptr);
  EXPECT_EQ(attributes, (Attributes{{"eps", 0.5}, {"k", std::int64_t{7}}, {"axis", std::int64_t{2}}}));
}

TEST(Attributes, TypedAccessIsChecked) {
  const Attributes attributes{{"k", std::int64_t{1}}};
  EXPECT_THROW(attributes.number("k"), Error);
  EXPECT_THROW(attributes.integer("absent"), Error);
}

}  // namespace
}  // namespace cermet
