#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(Tokenize, GivesTheIdsOfTheReference) {
  const auto reference = nlohmann::json::parse(content_of(CERMET_SOURCE_DIR "/models/demo/reference.json"));
  ASSERT_FALSE(reference["prompts"].empty());
  for (const auto& prompt : reference["prompts"]) {
    const std::string text = prompt["prompt"].get<std::string>();
    const CommandResult result = run_cermet("tokenize models/demo --json", text);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.json()["ids"], prompt["ids"]) << text;
  }
}

TEST(Tokenize, DecodingUndoesEncodingByteForByte) {
  for (const std::string& text : {std::string("plain text\n"), std::string("no newline"), std::string(""),
                                  std::string("\xef\xbb\xbf"
                                              "a mark, \0 zero",
                                              17),
                                  std::string("<|endoftext|> as text, \xf0\x9f\xa7\xaa and \xcc\x81")}) {
    const CommandResult ids = run_cermet("tokenize models/demo", text);
    ASSERT_EQ(ids.code, 0) << ids.err;
    EXPECT_EQ(run_cermet("tokenize models/demo --decode", ids.out).out, text);
  }
}

TEST(Tokenize, IdsMayBeWrittenInSeveralWays) {
  const std::string expected = run_cermet("tokenize models/demo --decode", "300 301 302").out;
  EXPECT_NE(expected, "");
  for (const char* list : {"300,301,302", "[300, 301, 302]", " 300\n301\t,302 \n"})
    EXPECT_EQ(run_cermet("tokenize models/demo --decode", list).out, expected) << list;
  EXPECT_EQ(run_cermet("tokenize models/demo --decode --json", "300 301 302").json()["text"], expected);
  EXPECT_EQ(run_cermet("tokenize models/demo --decode", "[]").out, "");
}

TEST(Tokenize, MistakesAreNamed) {
  expect_mistake("tokenize", {"MODEL"});
  expect_mistake("tokenize no/such/folder", {"no/such/folder", "nothing"});
  expect_mistake("tokenize models/demo/config.json", {"config.json", "a file"});
  expect_mistake("tokenize src", {"tokenizer.json"});
  expect_mistake("tokenize models/demo --decode", {"standard input", "id 1", "\"two\""}, "1 two 3");
  expect_mistake("tokenize models/demo --decode", {"id 0", "\"-1\""}, "-1");
  expect_mistake("tokenize models/demo --decode", {"token id", "8191", "8192"}, "1 2 8192");
  expect_mistake("tokenize models/demo --decode", {"\"99999999999999999999\""}, "99999999999999999999");
  expect_mistake("tokenize models/demo --decode", {"\"1.5\""}, "1.5");
  expect_mistake("tokenize models/demo", {"standard input:2", "UTF-8", "0xff", "offset 2"}, "a\n\xff");
  expect_mistake("tokenize models/demo", {"standard input:1", "UTF-16", "iconv"}, std::string("\xff\xfet\0", 4));
  const ScratchFolder folder;
  folder.file("tokenizer.json", "{\"model\": {\"type\": \"Lattice\", \"vocab\": {\"a\": 0}}}");
  expect_mistake("tokenize " + folder.path().string(), {"tokenizer.json", "BPE", "Lattice"});
  folder.file("tokenizer.json", "{\"model\": ");
  expect_mistake("tokenize " + folder.path().string(), {"tokenizer.json"});
}

}  // namespace
}  // namespace cermet::test
