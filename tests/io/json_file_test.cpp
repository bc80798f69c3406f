#include "io/json_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace cermet {
namespace {

std::string message(const std::function<void()>& action, Status status = Status::invalid_file) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "no error";
}

std::string parse_error(std::string_view text, const JsonLimits& limits = {}) {
  return message([&] { JsonDocument::parse(text, "f.json", limits); });
}

TEST(JsonFile, TypedAccess) {
  const JsonDocument document = JsonDocument::parse(
      R"({"a": {"b.c": [1, -2.5, "x\u00e9", true, null]}, "n": null, "big": 9223372036854775807, "huge": 9223372036854775808})",
      "f.json");
  const Json root = document.root();
  const Json list = root.at("a").at("b.c");
  EXPECT_EQ(list.size(), 5u);
  EXPECT_EQ(list.at(0).as_integer(), 1);
  EXPECT_EQ(list.at(0).as_number(), 1.0);
  EXPECT_EQ(list.at(1).as_number(), -2.5);
  EXPECT_EQ(list.at(2).as_string(), "x\u00e9");
  EXPECT_TRUE(list.at(3).as_bool());
  EXPECT_TRUE(list.at(4).is(JsonKind::null));
  EXPECT_FALSE(root.find("n").has_value());
  EXPECT_FALSE(root.find("none").has_value());
  EXPECT_EQ(root.at("big").as_integer(), std::numeric_limits<std::int64_t>::max());
  std::string keys;
  for (Json field : root) keys += std::string(field.key()) + " ";
  EXPECT_EQ(keys, "a n big huge ");
}

TEST(JsonFile, NumbersOfPythonAreReadAndRefusedWhereTheyAreUsed) {
  const JsonDocument document = JsonDocument::parse(
      R"({"a": NaN, "b": [Infinity, -Infinity , 1], "text": "NaN, \" Infinity", "": -1})", "f.json");
  const Json root = document.root();
  EXPECT_TRUE(root.at("a").is(JsonKind::number));
  EXPECT_EQ(message([&] { root.at("a").as_number(); }), "f.json: a: expected a finite number, found NaN");
  EXPECT_EQ(message([&] { root.at("b").at(0).as_number(); }), "f.json: b[0]: expected a finite number, found Infinity");
  EXPECT_EQ(message([&] { root.at("b").at(1).as_integer(); }), "f.json: b[1]: expected an integer, found -Infinity");
  EXPECT_EQ(root.at("b").at(2).as_integer(), 1);
  EXPECT_EQ(root.at("text").as_string(), "NaN, \" Infinity");
  EXPECT_TRUE(JsonDocument::parse("NaN", "f.json").root().is(JsonKind::number));
  for (const char* text : {"{NaN: 1}", "nan", "NaNs", "1NaN", "+Infinity", "-NaN", "Inf", "[\"\x7f\", NaN]"})
    EXPECT_NE(parse_error(text).find("expected JSON"), std::string::npos) << text;
}

TEST(JsonFile, PointersOfGitLfsSayWhatToDo) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "cermet-lfs-pointer.json";
  std::ofstream(file) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  EXPECT_NE(message([&] { JsonDocument::read(file); }).find("run git lfs pull"), std::string::npos);
  std::filesystem::remove(file);
}

TEST(JsonFile, ErrorsNameFieldExpectedAndFound) {
  const JsonDocument document =
      JsonDocument::parse(R"({"a": {"b.c": [1, {"d": "text"}]}, "n": -3, "huge": 9223372036854775808})", "f.json");
  const Json root = document.root();
  EXPECT_EQ(message([&] { root.at("missing"); }), "f.json: missing: expected a value, found nothing");
  EXPECT_EQ(message([&] { root.at("a").at("missing"); }), "f.json: a.missing: expected a value, found nothing");
  EXPECT_EQ(message([&] { root.at("a").at("b.c").at(1).at("d").as_integer(); }),
            "f.json: a[\"b.c\"][1].d: expected an integer, found \"text\"");
  EXPECT_EQ(message([&] { root.at("n").as_integer(0); }), "f.json: n: expected an integer of at least 0, found -3");
  EXPECT_EQ(message([&] { root.at("n").as_integer(0, 9); }), "f.json: n: expected an integer from 0 to 9, found -3");
  EXPECT_EQ(message([&] { root.at("huge").as_integer(); }),
            "f.json: huge: expected an integer, found 9.223372036854776e+18");
  EXPECT_EQ(message([&] { root.at("a").as_string(); }), "f.json: a: expected a string, found an object");
  EXPECT_EQ(message([&] { root.as_array(); }), "f.json: expected an array, found an object");
  EXPECT_EQ(message([&] { root.at("a").at("b.c").at(2); }),
            "f.json: a[\"b.c\"]: expected an array of at least 3, found an array of 2");
  EXPECT_EQ(message([&] { root.at("n").unexpected("yes", Status::unsupported); }, Status::unsupported),
            "f.json: n: expected yes, found -3");
}

TEST(JsonFile, RefusesWhatBreaksJsonOrLimits) {
  for (const std::string_view text :
       {"", " ", "{", "[1,]", "{\"a\" 1}", "[1] 2", "nul", "\"\xff\"", "\"\\ud800\"", "[1e999]", "{a: 1}", "\"\n\""}) {
    EXPECT_NE(parse_error(text).find("f.json: line "), std::string::npos) << parse_error(text);
  }
  EXPECT_NE(parse_error("[1,\n 2,\n x]").find("f.json: line 3, column 2: expected JSON, found a syntax error"),
            std::string::npos);
  EXPECT_EQ(parse_error("\xEF\xBB\xBF{}"), "f.json: expected JSON, found a byte order mark");
  EXPECT_EQ(parse_error(std::string_view("{}\0x", 4)), "f.json: expected JSON, found a zero byte");
  EXPECT_EQ(parse_error(R"({"a": 1, "b": {"c": 2, "d": 3, "c": 4}})"),
            "f.json: b: expected each key once, found \"c\" twice");
  EXPECT_EQ(parse_error(R"([0, {"a": 1, "a": 1}])"), "f.json: [1]: expected each key once, found \"a\" twice");
  EXPECT_EQ(parse_error(R"({"a": 1, "\u0061": 1})"), "f.json: expected each key once, found \"a\" twice");
  EXPECT_EQ(parse_error(std::string(65, '[') + std::string(65, ']')),
            "f.json: expected JSON nested at most 64 deep, found deeper");
  EXPECT_NO_THROW(JsonDocument::parse(std::string(64, '[') + std::string(64, ']'), "f.json"));
  EXPECT_EQ(parse_error("[1, 2, 3]", {.max_values = 3}), "f.json: expected at most 3 JSON values, found more");
  EXPECT_EQ(parse_error("[1, 2, 3]", {.max_bytes = 8}), "f.json: expected at most 8 bytes, found 9");
}

TEST(JsonFile, ReadsRegularFilesOnly) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "cermet_json_file_test";
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "a.json";
  std::ofstream(file) << "[1, 2]";
  EXPECT_EQ(JsonDocument::read(file).root().size(), 2u);
  EXPECT_EQ(message([&] { JsonDocument::read(file, {.max_bytes = 5}); }),
            file.string() + ": expected at most 5 bytes, found 6");
  EXPECT_EQ(message([&] { JsonDocument::read(folder / "none.json"); }, Status::io),
            (folder / "none.json").string() + ": expected a file, found none");
  EXPECT_EQ(message([&] { JsonDocument::read(folder); }, Status::io),
            folder.string() + ": expected a regular file, found a folder");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cermet
