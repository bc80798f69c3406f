#include "model/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/text.hpp"
#include "model/tokenizer/regex.hpp"
#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

using nlohmann::json;
using test::content_of;
using test::error_of;
using test::expect_error;
using test::ScratchFolder;
using Ids = std::vector<std::int32_t>;

const std::filesystem::path source = CERMET_SOURCE_DIR;
const std::filesystem::path data = source / "tests/model/data/tokenizer";

const json& cases() {  // written by tools/make_tokenizer_cases.py
  static const json all = json::parse(content_of(data / "cases.json"));
  return all;
}

const Tokenizer& demo() {
  static const Tokenizer tokenizer = Tokenizer::load(source / "models/demo/tokenizer.json");
  return tokenizer;
}

/// A whole tokenizer.json from its parts and the vocabulary that all of cases.json share.
json assemble(json parts) {
  const json flags = {{"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  json file = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"decoder", flags}, {"model", cases()["model"]}};
  file["decoder"]["type"] = "ByteLevel";
  for (const char* name : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor"}) file[name] = parts[name];
  json& model = file["model"];
  model.update({{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false}});
  model.update(parts["settings"]);
  if (model.value("merges_as_text", false)) {
    for (json& merge : model["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  model.erase("merges_as_text");
  return file;
}

Tokenizer load(const json& file) {
  const ScratchFolder scratch;
  return Tokenizer::load(scratch.file("tokenizer.json", file.dump()));
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
  std::vector<std::string> texts = {"",           "\xFF", "\xC3", "a\xE2\x82", "\xF0\x9F\x98\x80\xF0\x9F\x98", "\xED\xA0\x80\xED\xB0\x80", "\xC0\x80 \xF5",
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
    for (std::size_t size = random() % 40; text.size() < size;) text += static_cast<char>(random() % 4 == 0 ? random() : ' ' + random() % 95);
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> long_texts() {
  constexpr std::size_t size = 1 << 20;
  std::vector<std::string> texts;
  for (const std::string_view unit : {"a", "ab", " ", "\n", "1", "=", "\u4E2D\u6587", "a\u0323\u0301", "\xFF", "\U0001F600", "<", "aB"}) {
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
  compare(demo(), cases()["demo"]);
  const json reference = json::parse(content_of(source / "models/demo/reference.json"));
  for (const json& prompt : reference["prompts"]) {
    EXPECT_EQ(demo().encode(prompt["prompt"].get<std::string>()), prompt["ids"].get<Ids>());
    EXPECT_EQ(demo().decode(prompt["greedy_ids"].get<Ids>()), prompt["text"].get<std::string>());
  }
}

TEST(Tokenizer, GivesTextBackByteForByte) {
  for (const char* name : {"gpt2", "llama 3", "o200k", "deepseek 3", "smollm", "merged with next", "contiguous", "empty matches"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = named(name);
    for (const std::string& text : hostile_texts()) EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(text, false)), text) << quote(text);
  }
}

TEST(Tokenizer, GivesTheDocumentationBackByteForByte) {
  const std::string text = content_of(source / "models/demo/heldout.txt");
  ASSERT_GT(text.size(), 1'000'000u);
  const Ids ids = demo().encode(text);
  EXPECT_TRUE(demo().decode_bytes(ids) == text);
  EXPECT_TRUE(demo().decode(ids) == text);
  EXPECT_TRUE(named("llama 3").decode_bytes(named("llama 3").encode(text, false)) == text);
}

TEST(Tokenizer, TakesLongPiecesInLinearTime) {  // quadratic time would run into the limit of the test
  const Tokenizer llama3 = named("llama 3"), qwen2 = named("qwen 2");
  for (const std::string& text : long_texts()) {
    SCOPED_TRACE(quote(text, 8));
    EXPECT_TRUE(demo().decode_bytes(demo().encode(text)) == text);
    EXPECT_TRUE(llama3.decode_bytes(llama3.encode(text, false)) == text);
    EXPECT_FALSE(qwen2.encode(text).empty());
  }
}

TEST(Tokenizer, DecodesBrokenBytesAsReplacementCharacters) {
  const auto through = [](std::string_view bytes) { return demo().decode(demo().encode(bytes)); };
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
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % static_cast<unsigned>(llama3.vocab_size() + 2));
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
  StreamDecoder stream(demo());
  EXPECT_EQ(stream.push(*demo().token_to_id("\u00C3")), "");  // names of the bytes 0xC3 and 0xA9
  EXPECT_EQ(stream.push(*demo().token_to_id("\u00A9")), "\u00E9");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, AnswersAboutTokens) {
  const Tokenizer tokenizer = named("llama 3");
  const auto begin = tokenizer.token_to_id("<|begin_of_text|>");
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(tokenizer.vocab_size(), *tokenizer.token_to_id("<|endoftext|>") + 1);
  EXPECT_TRUE(tokenizer.is_special(*begin));
  EXPECT_EQ(tokenizer.token_bytes(*begin), "<|begin_of_text|>");
  const auto the = tokenizer.token_to_id("\u0120the");
  ASSERT_TRUE(the.has_value());
  EXPECT_FALSE(tokenizer.is_special(*the));
  EXPECT_EQ(tokenizer.token_bytes(*the), " the");
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

TEST(Tokenizer, NamesAByteThatTheVocabularyLacks) {
  json file = assemble(cases()["tokenizers"][0]["parts"]);
  file["model"]["vocab"].erase("!");
  file["model"]["merges"] = json::array();
  const Tokenizer tokenizer = load(file);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a?")), "a?");
  expect_error(Status::invalid_argument, {"found 0x21"}, [&] { tokenizer.encode("a!"); });
}

TEST(Tokenizer, GivesTheSameIdsInEveryThread) {
  const std::string text = content_of(source / "models/demo/heldout.txt").substr(0, 100'000);
  const Ids expected = demo().encode(text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = demo().encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_TRUE(result == expected);
}

TEST(Tokenizer, RefusesEveryBadFile) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data / "bad")) files.push_back(entry.path());
  ASSERT_GE(files.size(), 90u);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename());
    const json expect = json::parse(content_of(file))["_expect"];
    const Status status = expect["status"] == "unsupported" ? Status::unsupported : Status::invalid_file;
    expect_error(status, {file.string() + ": ", expect["message"].get<std::string>()}, [&] { Tokenizer::load(file); });
  }
}

TEST(Tokenizer, RefusesWhatIsNoTokenizer) {
  const ScratchFolder scratch;
  for (const std::string_view content : {"", "{", "[]", "null", "{}", "{\"model\":{}}", "\xFF"}) {
    expect_error(Status::invalid_file, {"tokenizer.json: "}, [&] { Tokenizer::load(scratch.file("tokenizer.json", content)); });
  }
  expect_error(Status::invalid_file, {"nested at most"}, [&] { Tokenizer::load(scratch.file("tokenizer.json", std::string(1 << 20, '['))); });
  expect_error(Status::io, {"absent.json: expected a file, found none"}, [&] { Tokenizer::load(scratch / "absent.json"); });
}

TEST(Tokenizer, StopsAnExpressionThatDoesNotEnd) {
  json parts = cases()["tokenizers"][0]["parts"];
  parts["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(?:a|a)+(?:a|a)+(?:a|a)+b"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})");
  const Tokenizer tokenizer = load(assemble(parts));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aaab")), "aaab");
  expect_error(Status::unsupported, {"matches in time"}, [&] { tokenizer.encode(std::string(60, 'a') + "cb"); });
}

// A file that is damaged anywhere loads or is refused, and what loads can encode or says why not.
TEST(Tokenizer, SurvivesDamagedFiles) {
  json parts = cases()["tokenizers"][3]["parts"];  // qwen 2, which has most components
  parts["post_processor"] = cases()["tokenizers"][2]["parts"]["post_processor"];
  json file = assemble(parts);
  file["post_processor"]["processors"][1]["special_tokens"]["<|begin_of_text|>"]["ids"] = {1};
  json vocab = json::object(), merges = json::array();
  for (const auto& [name, id] : file["model"]["vocab"].items()) {
    if (id.get<int>() < 270) vocab[name] = id;
  }
  for (const json& merge : file["model"]["merges"]) {
    if (vocab.contains(merge[0].get<std::string>() + merge[1].get<std::string>()) && merges.size() < 14) merges.push_back(merge);
  }
  file["model"]["vocab"] = vocab;
  file["model"]["merges"] = merges;
  const std::string whole = file.dump();
  const ScratchFolder scratch;
  ASSERT_NO_THROW(Tokenizer::load(scratch.file("tokenizer.json", whole)));

  std::mt19937 random(4);
  const std::vector<std::string_view> splices = {"null",  "-1", "1e9", "99999999999", "\"\"", "[]", "{}",   "true", "[[",
                                                 "\"a\"", "(",  ")",   "[",           "*",    "\\", "\xFF", ",",    "{1,9}"};
  int loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (auto changes = 1 + random() % 3; changes > 0 && !text.empty(); --changes) {
      // Half of the changes hit the components, which are a small part of the bytes.
      const std::size_t components = text.find("\"normalizer\"");
      const std::size_t low = random() % 2 == 0 && components != std::string::npos ? components : 0;
      const std::size_t at = low + random() % (text.size() - low);
      switch (random() % 5) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 20); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 40)); break;
        case 3: text.insert(at, splices[random() % splices.size()]); break;
        default: {  // a whole value
          const std::size_t begin = text.find(':', at), end = begin == std::string::npos ? begin : text.find_first_of(",}]", begin);
          if (end != std::string::npos) text.replace(begin + 1, end - begin - 1, splices[random() % splices.size()]);
        }
      }
    }
    const auto error = error_of([&] {
      const Tokenizer tokenizer = Tokenizer::load(scratch.file("tokenizer.json", text));
      ++loaded;
      tokenizer.decode(tokenizer.encode("Hello  <|im_start|>w\u00F6rld 123\xFF <L> e\u0301\n"));
    });
    if (!error) continue;
    EXPECT_NE(error->status(), Status::internal) << error->what();
  }
  EXPECT_GT(loaded, 50);    // the damage is not so great that nothing behind the parser is reached
  EXPECT_LT(loaded, 1900);  // nor so small that nothing is refused
}

TEST(Regex, TranslatesWhatTheDialectsReadDifferently) {
  EXPECT_EQ(translate_regex("ab"), "\\x{61}\\x{62}");
  EXPECT_EQ(translate_regex("a{,3}"), "\\x{61}{0,3}");
  EXPECT_EQ(translate_regex("a{2,3}+"), "(?:\\x{61}{2,3})+");
  EXPECT_EQ(translate_regex("(a){2}+"), "(?:(?:\\x{61}){2})+");
  EXPECT_EQ(translate_regex("a{x"), "\\x{61}\\x{7b}\\x{78}");
  EXPECT_EQ(translate_regex("^$"), "(?m:^)(?m:$)");
  EXPECT_EQ(translate_regex("\\v\\/"), "\\x{b}\\x{2f}");
  EXPECT_EQ(translate_regex("\\p{Lu}\\p{^Lu}\\P{Han}"), "\\p{Lu}\\P{Lu}\\P{sc:Han}");
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
  EXPECT_FALSE(Regex("\\s").find("\u180E", 0, memory).has_value());  // which PCRE2 alone takes for white space
  EXPECT_TRUE(Regex::literal("(").find("a(b", 0, memory).has_value());
}

}  // namespace
}  // namespace cermet
