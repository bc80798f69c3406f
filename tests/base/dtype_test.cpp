#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include <set>

namespace cermet {
namespace {

TEST(DType, NamesAreUniqueAndFindTheirType) {
  std::set<std::string_view> names, stored;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_TRUE(names.insert(name_of(dtype)).second) << name_of(dtype);
    EXPECT_TRUE(stored.insert(stored_name_of(dtype)).second) << stored_name_of(dtype);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_EQ(dtype_from_stored_name(stored_name_of(dtype)), dtype);
  }
  EXPECT_FALSE(dtype_from_name("BF16"));
  EXPECT_FALSE(dtype_from_name(""));
  for (const auto& [alias, dtype] : {std::pair("float16", DType::f16),
                                     {"fp16", DType::f16},
                                     {"bfloat16", DType::bf16},
                                     {"float32", DType::f32},
                                     {"fp32", DType::f32},
                                     {"int8", DType::i8},
                                     {"fp8", DType::f8_e4m3}})
    EXPECT_EQ(dtype_from_name(alias), dtype) << "a name of other libraries";
  EXPECT_FALSE(dtype_from_stored_name("bf16"));
}

TEST(DType, SizesFollowTheNames) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string name(name_of(dtype));
    const std::size_t digits = name.find_first_of("123456789");
    const std::size_t bits = digits == std::string::npos ? 8 : std::stoul(name.substr(digits));
    EXPECT_EQ(size_of(dtype) * 8, bits) << name;
  }
}

TEST(DType, EveryTypeIsFloatingIntegerOrBoolean) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(is_floating(dtype) + is_integer(dtype) + (dtype == DType::boolean), 1) << name_of(dtype);
    EXPECT_EQ(dtypes::integer.contains(dtype), is_integer(dtype)) << name_of(dtype);
    EXPECT_NE(dtypes::any.contains(dtype), dtypes::stored_only.contains(dtype)) << name_of(dtype);
    EXPECT_TRUE(dtypes::all.contains(dtype)) << name_of(dtype);
  }
}

TEST(DTypeSet, Text) {
  EXPECT_EQ(DTypeSet{DType::f32}.to_string(), "f32");
  EXPECT_EQ(dtypes::index.to_string(), "i32 or i64");
  EXPECT_EQ(dtypes::real.to_string(), "f16, bf16 or f32");
  EXPECT_EQ(DTypeSet().to_string(), "");
}

TEST(DTypeSet, Union) {
  const DTypeSet both = dtypes::fp8 | dtypes::index;
  EXPECT_TRUE(both.contains(DType::f8_e4m3) && both.contains(DType::i64));
  EXPECT_FALSE(both.contains(DType::f32));
}

}  // namespace
}  // namespace cermet
