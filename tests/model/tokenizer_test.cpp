#include <algorithm>
#include <random>
#include <thread>

#include "base/text.hpp"
#include "tests/model/tokenizer_cases.hpp"

namespace cermet::test {
namespace {

using Ids = std::vector<std::int32_t>;

const Tokenizer& demo_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(source / "models/demo/tokenizer.json");
  return tokenizer;
}

Tokenizer named(std::string_view name) {
  for (const json& tokenizer : cases()["tokenizers"]) {
    if (tokenizer["name"] == name) return load(assemble(tokenizer["parts"]));
  }
  throw std::runtime_error("no such tokenizer: " + std::string(name));
}

/// Ids and decoded text of every text, against those of the library that the cases were made with.
void compare(const Tokenizer& tokenizer, const json& expected) {
  const json& texts = cases()["texts"];
  const json& without = expected.contains("ids_without_special") ? expected["ids_without_special"] : expected["ids"];
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    SCOPED_TRACE(quote(text));
    const auto ids = expected["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(tokenizer.encode(text, false), without[i].get<Ids>());
    const auto decoded = expected["decoded"].find(std::to_string(i));
    if (decoded == expected["decoded"].end()) continue;
    EXPECT_EQ(tokenizer.decode(ids, true), decoded->get<std::string>());
  }
}

/// Texts that make trouble: broken UTF-8, every byte, a long piece, special tokens as text.
std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = {"",
                                    "\xFF",
                                    "\xC3",
                                    "a\xE2\x82",
                                    "\xF0\x9F\x98\x80\xF0\x9F\x98",
                                    "\xED\xA0\x80\xED\xB0\x80",
                                    "\xC0\x80 \xF5",
                                    " \x80 \x80 "};
  std::string every;
  for (int byte = 0; byte < 256; ++byte) {
    texts.emplace_back(1, static_cast<char>(byte));
    every += static_cast<char>(byte);
  }
  texts.push_back(every);
  texts.push_back("<|endoftext|><|end\xFFoftext|><|endoftext|>\xFE<|endoftext|>");
  texts.emplace_back("\U0001F469\u200D\U0001F469\u200D\U0001F467 \U0001F44D\U0001F3FD \U0001F1E9\U0001F1EA");
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (std::size_t size = random() % 40; text.size() < size;)
      text += static_cast<char>(random() % 4 == 0 ? random() : ' ' + random() % 95);
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> long_texts() {
  constexpr std::size_t size = 1 << 20;
  std::vector<std::string> texts;
  for (const std::string_view unit :
       {"a", "ab", " ", "\n", "1", "=", "\u4E2D\u6587", "a\u0323\u0301", "\xFF", "\U0001F600", "<", "aB"}) {
    std::string text;
    while (text.size() < size) text += unit;
    texts.push_back(text);
  }
  std::mt19937 random(2);
  texts.emplace_back(size, 'x');
  for (char& c : texts.back()) c = static_cast<char>('a' + random() % 26);
  texts.push_back(std::string(size, ' ') + "x");
  return texts;
}

TEST(Tokenizer, GivesTheLibrarysIds) {
  for (const json& tokenizer : cases()["tokenizers"]) {
    SCOPED_TRACE(tokenizer["name"].get<std::string>());
    compare(load(assemble(tokenizer["parts"])), tokenizer);
  }
}

TEST(Tokenizer, GivesTheLibrarysIdsForTheDemoModel) {
  compare(demo_tokenizer(), cases()["demo"]);
  const json reference = json::parse(content_of(source / "models/demo/reference.json"));
  for (const json& prompt : reference["prompts"]) {
    EXPECT_EQ(demo_tokenizer().encode(prompt["prompt"].get<std::string>()), prompt["ids"].get<Ids>());
    EXPECT_EQ(demo_tokenizer().decode(prompt["greedy_ids"].get<Ids>()), prompt["text"].get<std::string>());
  }
}

TEST(Tokenizer, GivesTextBackByteForByte) {
  for (const char* name :
       {"gpt2", "llama 3", "o200k", "deepseek 3", "smollm", "merged with next", "contiguous", "empty matches"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = named(name);
    for (const std::string& text : hostile_texts())
      EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(text, false)), text) << quote(text);
  }
}

TEST(Tokenizer, GivesTheDocumentationBackByteForByte) {
  const std::string text = content_of(source / "models/demo/heldout.txt");
  ASSERT_GT(text.size(), 1'000'000u);
  const Ids ids = demo_tokenizer().encode(text);
  EXPECT_TRUE(demo_tokenizer().decode_bytes(ids) == text);
  EXPECT_TRUE(demo_tokenizer().decode(ids) == text);
  EXPECT_TRUE(named("llama 3").decode_bytes(named("llama 3").encode(text, false)) == text);
}

TEST(Tokenizer, TakesLongPiecesInLinearTime) {  // quadratic time would run into the limit of the test
  const Tokenizer llama3 = named("llama 3"), qwen2 = named("qwen 2");
  for (const std::string& text : long_texts()) {
    SCOPED_TRACE(quote(text, 8));
    EXPECT_TRUE(demo_tokenizer().decode_bytes(demo_tokenizer().encode(text)) == text);
    EXPECT_TRUE(llama3.decode_bytes(llama3.encode(text, false)) == text);
    EXPECT_FALSE(qwen2.encode(text).empty());
  }
}

TEST(Tokenizer, DecodesBrokenBytesAsReplacementCharacters) {
  const auto through = [](std::string_view bytes) { return demo_tokenizer().decode(demo_tokenizer().encode(bytes)); };
  EXPECT_EQ(through("a\xFF"
                    "b"),
            "a\uFFFDb");
  EXPECT_EQ(through("\xF0\x9F\x98"), "\uFFFD");  // the start of one character
  EXPECT_EQ(through("\xF0\x9F\x98\xF0\x9F\x98\x80"), "\uFFFD\U0001F600");
  EXPECT_EQ(through("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate is no start of anything
}

TEST(Tokenizer, StreamsWhatItDecodes) {
  const Tokenizer llama3 = named("llama 3");
  std::mt19937 random(3);
  std::vector<std::pair<const Tokenizer*, Ids>> sequences;
  for (const std::string& text : hostile_texts()) sequences.emplace_back(&llama3, llama3.encode(text));
  for (int i = 0; i < 300; ++i) {  // bytes in any order, so that characters break off everywhere
    Ids ids(random() % 30);
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(random() % static_cast<unsigned>(llama3.vocab_size() + 2));
    sequences.emplace_back(&llama3, ids);
  }
  for (const auto& [tokenizer, ids] : sequences) {
    for (const bool skip : {false, true}) {
      StreamDecoder stream(*tokenizer, skip);
      std::string text;
      for (const std::int32_t id : ids) {
        const std::string part = stream.push(id);
        for (std::size_t at = 0; at < part.size();) {
          const Utf8Unit unit = first_utf8_unit(std::string_view(part).substr(at));
          ASSERT_TRUE(unit.valid);
          at += unit.size;
        }
        text += part;
      }
      text += stream.finish();
      EXPECT_EQ(text, tokenizer->decode(ids, skip));
    }
  }
  // A character comes as soon as it is whole.
  StreamDecoder stream(demo_tokenizer());
  EXPECT_EQ(stream.push(*demo_tokenizer().token_to_id("\u00C3")), "");  // names of the bytes 0xC3 and 0xA9
  EXPECT_EQ(stream.push(*demo_tokenizer().token_to_id("\u00A9")), "\u00E9");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, AnswersAboutTokens) {
  const Tokenizer tokenizer = named("llama 3");
  const auto begin = tokenizer.token_to_id("<|begin_of_text|>");
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(tokenizer.vocab_size(), *tokenizer.token_to_id("<|endoftext|>") + 1);
  EXPECT_TRUE(tokenizer.is_special(*begin));
  EXPECT_EQ(tokenizer.decode_bytes(Ids{*begin}), "<|begin_of_text|>");
  const auto the = tokenizer.token_to_id("\u0120the");
  ASSERT_TRUE(the.has_value());
  EXPECT_FALSE(tokenizer.is_special(*the));
  EXPECT_EQ(tokenizer.decode_bytes(Ids{*the}), " the");
  EXPECT_FALSE(tokenizer.token_to_id("no such token").has_value());
  for (const std::int32_t id : {-1, tokenizer.vocab_size(), std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_FALSE(tokenizer.contains(id) || tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.decode(Ids{*the, id, *the}), " the the");
  }
  EXPECT_EQ(tokenizer.encode("x").front(), *begin);
  EXPECT_EQ(tokenizer.encode("x", false).size(), tokenizer.encode("x").size() - 1);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("x<|endoftext|>y"), true), "xy");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("x<|endoftext|>y")), "<|begin_of_text|>x<|endoftext|>y");
}

TEST(Tokenizer, IdsMayLeaveHoles) {
  json file = assemble(cases()["tokenizers"][0]["parts"]);
  const auto highest = static_cast<std::int32_t>(file["model"]["vocab"].size());
  file["model"]["vocab"]["far"] = highest + 1000;
  const Tokenizer tokenizer = load(file);
  EXPECT_EQ(tokenizer.vocab_size(), highest + 1001);
  EXPECT_FALSE(tokenizer.contains(highest + 500));
  EXPECT_EQ(tokenizer.decode(Ids{highest + 500, highest + 1000}), "far");
}

TEST(Tokenizer, LeavesOutAByteThatTheVocabularyLacks) {  // as the library does where there is no unknown token
  json file = assemble(cases()["tokenizers"][0]["parts"]);
  file["model"]["vocab"].erase("!");
  file["added_tokens"] = json::array();
  file["model"]["merges"] = json::array();
  const Tokenizer tokenizer = load(file);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a?")), "a?");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a!b")), "ab");
}

TEST(Tokenizer, GivesTheSameIdsInEveryThread) {
  const std::string text = content_of(source / "models/demo/heldout.txt").substr(0, 100'000);
  const Ids expected = demo_tokenizer().encode(text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = demo_tokenizer().encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_TRUE(result == expected);
}

}  // namespace
}  // namespace cermet::test
