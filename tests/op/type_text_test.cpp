#include "op/schema/type_text.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "op/schema/dim_text.hpp"

namespace cermet {
namespace {

/// Message of the error that parsing throws; "" when it throws none.
template <class Parse>
std::string parse_error(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(ParseDim, ReadsWhatToStringWrites) {
  for (const char* text : {"0", "4096", "9223372036854775807", "T", "8*T", "T+1", "8*T-3", "q_len", "_x1", "B*T",
                           "8*B*T+T-1", "ceil(H/2)", "floor((B*T+1)/3)", "floor(B/(T+1))", "T*floor(H/2)", "min(8,T)",
                           "max(-1*T+8,0)", "max(B,T,min(5,H))", "ceil(B*T/16)"})
    EXPECT_EQ(parse_dim(text).to_string(), text);
  EXPECT_EQ(parse_dim("1*T"), Dim::symbol("T"));
  EXPECT_EQ(parse_dim(" 2 * T + 4 "), Dim::symbol("T") * 2 + 4);
  EXPECT_EQ(parse_dim("0*T"), Dim(0));
  EXPECT_EQ(parse_dim("( T + 1 ) * (T - 1)"), Dim::symbol("T") * Dim::symbol("T") - 1);
  EXPECT_EQ(parse_dim("8 - T"), 8 - Dim::symbol("T"));
  EXPECT_EQ(parse_dim("min").to_string(), "min") << "a symbol where no '(' follows";
}

TEST(ParseDim, NamesWhatIsWrong) {
  EXPECT_EQ(parse_error([] { parse_dim("-3"); }),
            "dimension \"-3\": expected a dimension (an integer or a symbol) at column 1, found \"-3\"");
  EXPECT_EQ(parse_error([] { parse_dim(""); }),
            "dimension \"\": expected a dimension (an integer or a symbol) at column 1, found the end");
  EXPECT_EQ(parse_error([] { parse_dim("T+"); }),
            "dimension \"T+\": expected a dimension (an integer or a symbol) at column 3, found the end");
  EXPECT_EQ(parse_error([] { parse_dim("T+-1"); }),
            "dimension \"T+-1\": expected a dimension (an integer or a symbol) at column 3, found \"-1\"");
  EXPECT_EQ(parse_error([] { parse_dim("8*"); }),
            "dimension \"8*\": expected a dimension (an integer or a symbol) at column 3, found the end");
  EXPECT_EQ(parse_error([] { parse_dim("4x"); }), "dimension \"4x\": expected nothing more at column 2, found \"x\"");
  EXPECT_EQ(parse_error([] { parse_dim("round(T/2)"); }),
            "dimension \"round(T/2)\": expected floor, ceil, min or max before the '(' at column 7, found \"T/2)\"");
  EXPECT_EQ(parse_error([] { parse_dim("ceil(T)"); }), "dimension \"ceil(T)\": expected '/' at column 7, found \")\"");
  EXPECT_EQ(parse_error([] { parse_dim("min(T)"); }), "dimension \"min(T)\": expected ',' at column 6, found \")\"");
  EXPECT_EQ(parse_error([] { parse_dim("ceil(T/0)"); }), "dimension (T-1) / (0): expected a positive divisor");
  EXPECT_EQ(parse_error([] { parse_dim("(T"); }), "dimension \"(T\": expected ')' at column 3, found the end");
  EXPECT_NE(parse_error([] { parse_dim(std::string(100000, '(')); }).find("at most 32 levels of nesting"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_dim("9223372036854775808"); }).find("below 2^63"), std::string::npos);
}

TEST(ParseTensorType, ReadsWhatToStringWrites) {
  for (const char* text :
       {"f32[]", "bf16[T, 4096]", "f8_e4m3[2, 3, 4]", "bool[0]", "i64[8*T+1]", "u8[1, 2, 3, 4, 5, 6, 7, 8]"})
    EXPECT_EQ(parse_tensor_type(text).to_string(), text);
  EXPECT_EQ(parse_tensor_type("  f16 [ 2,3 ] "), (TensorType{DType::f16, {2, 3}}));
}

TEST(ParseTensorType, NamesWhatIsWrong) {
  const std::string unknown = parse_error([] { parse_tensor_type("float[2]"); });
  EXPECT_EQ(unknown.substr(0, 53), "type \"float[2]\": expected an element type (bool, u8, ");
  EXPECT_NE(unknown.find("at column 1, found \"float[2]\""), std::string::npos);
  EXPECT_EQ(parse_error([] { parse_tensor_type("f32"); }), "type \"f32\": expected '[' at column 4, found the end");
  EXPECT_EQ(parse_error([] { parse_tensor_type("f32[2"); }), "type \"f32[2\": expected ']' at column 6, found the end");
  EXPECT_NE(parse_error([] { parse_tensor_type("f32[2,]"); }).find("expected a dimension"), std::string::npos);
  EXPECT_EQ(parse_error([] { parse_tensor_type("f32[2] x"); }),
            "type \"f32[2] x\": expected nothing more at column 8, found \"x\"");
  EXPECT_NE(parse_error([] { parse_tensor_type("f32[1,1,1,1,1,1,1,1,1]"); }).find("at most 8 dimensions"),
            std::string::npos);
  EXPECT_EQ(parse_error([] { parse_tensor_type("f32[\n\x01]"); }).find_first_of("\n\x01"), std::string::npos);
}

TEST(ParseAttributeValue, ReadsWhatToStringWrites) {
  const std::vector<AttributeValue> all{true,
                                        false,
                                        std::int64_t{8},
                                        std::int64_t{-8},
                                        1e-5,
                                        0.0,
                                        -2.5,
                                        1e300,
                                        std::string("silu"),
                                        std::string(),
                                        Ints{},
                                        Ints{1, -2},
                                        Floats{},
                                        Floats{1, -0.5, 1e300},
                                        Strings{},
                                        Strings{"a", "]\", "},
                                        TensorData::of<float>({DType::f32, {2, 1}}, {1.0f, -0.5f}),
                                        TensorData::of<std::int64_t>({DType::i64, {0}}, {}),
                                        Subgraph{"graph g {\n  input %x : f32[T]\n}\n", nullptr}};
  for (const AttributeValue& value : all) EXPECT_EQ(parse_attribute_value(to_string(value)), value) << to_string(value);
  const AttributeValue infinite = parse_attribute_value("-inf");
  EXPECT_EQ(std::get<double>(infinite), -std::numeric_limits<double>::infinity());
}

TEST(ParseAttributeValue, NamesWhatIsWrong) {
  EXPECT_NE(
      parse_error([] { parse_attribute_value("\"open"); }).find("expected a string in quotes with its closing one"),
      std::string::npos);
  EXPECT_NE(parse_error([] { parse_attribute_value("\"a\\q\""); }).find("in which a backslash comes before one of"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_attribute_value("[1, x]"); }).find("expected a number at column 5"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_attribute_value("maybe"); }).find("expected true, false, a number"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_attribute_value(""); }).find("found the end"), std::string::npos);
  EXPECT_EQ(parse_attribute_value("[1, 0.5]"), AttributeValue(Floats{1, 0.5}));
  EXPECT_NE(parse_error([] { parse_attribute_value("[\"a\", 1]"); }).find("expected a string in quotes at column 7"),
            std::string::npos);
  EXPECT_EQ(parse_error([] { parse_attribute_value("tensor f32[2] 0x00"); }),
            "tensor f32[2]: expected 8 bytes, found 1");
  EXPECT_EQ(parse_error([] { parse_attribute_value("tensor f32[T] 0x00"); }),
            "tensor: expected constant dimensions, found f32[T]");
  EXPECT_NE(parse_error([] {
              parse_attribute_value("tensor u8[1] 0x0g");
            }).find("expected two hexadecimal digits for each byte"),
            std::string::npos);
  EXPECT_NE(parse_error([] {
              parse_attribute_value("tensor u8[1] 7");
            }).find("expected bytes such as 0x0000803f at column 14"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_attribute_value("truer"); }).find("expected true, false, a number"),
            std::string::npos);
}

TEST(ParseCall, ReadsOperandsAndAttributes) {
  const OperatorCall call =
      parse_call("linear(bf16[T, 64], bf16[32, 64], -) {out_dtype = \"f32\", n = [1, 2], eps = 1e-06}");
  EXPECT_EQ(call.name, "linear");
  ASSERT_EQ(call.inputs.size(), 3u);
  EXPECT_EQ(call.inputs[0]->to_string(), "bf16[T, 64]");
  EXPECT_FALSE(call.inputs[2].has_value());
  EXPECT_EQ(call.attributes.text("out_dtype"), "f32");
  EXPECT_EQ(call.attributes.integers("n"), (Ints{1, 2}));
  EXPECT_EQ(call.attributes.number("eps"), 1e-6);
  EXPECT_TRUE(parse_call("f()").inputs.empty());
}

TEST(ParseCall, NamesWhatIsWrong) {
  EXPECT_NE(parse_error([] { parse_call("(f32[2])"); }).find("expected an operator's name at column 1"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_call("f(f32[2]"); }).find("expected ')' at column 9, found the end"),
            std::string::npos);
  EXPECT_NE(parse_error([] { parse_call("f(f32[2]) {axis}"); }).find("expected '=' at column 16"), std::string::npos);
  EXPECT_NE(parse_error([] { parse_call("f(f32[2]) {axis = 1"); }).find("expected '}'"), std::string::npos);
}

}  // namespace
}  // namespace cermet
