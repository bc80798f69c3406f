// Tokenizers of every kind of component, against tests/model/data/tokenizer/kinds.json, which
// tools/make_tokenizer_kinds.py writes.
#include <array>
#include <functional>

#include "base/text.hpp"
#include "model/tokenizer/normalizer.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "tests/model/tokenizer_cases.hpp"

namespace cermet::test {
namespace {

using KindIds = std::vector<std::int32_t>;

const json& kinds() {
  static const json all = json::parse(content_of(tokenizer_data / "kinds.json"));
  return all;
}

Tokenizer load_kind(const json& kind) {
  json file = kind["file"];
  file["model"] = kinds()["models"][kind["model"].get<std::string>()];
  return load(file);
}

Tokenizer kind_named(std::string_view name) {
  for (const json& kind : kinds()["kinds"])
    if (kind["name"] == name) return load_kind(kind);
  throw std::runtime_error("no such kind: " + std::string(name));
}

std::string streamed(const Tokenizer& tokenizer, const KindIds& ids, bool skip) {
  StreamDecoder stream(tokenizer, skip);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  return text += stream.finish();
}

TEST(TokenizerKinds, GiveTheLibrarysIdsAndTexts) {
  ASSERT_GE(kinds()["kinds"].size(), 20u);
  for (const json& kind : kinds()["kinds"]) {
    const Tokenizer tokenizer = load_kind(kind);
    const json& without = kind.contains("ids_without_special") ? kind["ids_without_special"] : kind["ids"];
    for (std::size_t i = 0; i < kinds()["texts"].size(); ++i) {
      const auto text = kinds()["texts"][i].get<std::string>();
      SCOPED_TRACE(kind["name"].get<std::string>() + ": " + quote(text));
      const auto ids = kind["ids"][i].get<KindIds>();
      EXPECT_EQ(tokenizer.encode(text), ids);
      EXPECT_EQ(tokenizer.encode(text, false), without[i].get<KindIds>());
      EXPECT_EQ(tokenizer.decode(ids, true), kind["decoded"][i].get<std::string>());
      EXPECT_EQ(tokenizer.decode(ids), kind["decoded_whole"][i].get<std::string>());
      for (const bool skip : {false, true}) EXPECT_EQ(streamed(tokenizer, ids, skip), tokenizer.decode(ids, skip));
    }
  }
}

/// CRC-32 as in zlib.
class Checksum {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      value_ ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) value_ = value_ >> 1 ^ (value_ & 1 ? 0xEDB88320u : 0);
    }
  }
  std::uint32_t value() const { return ~value_; }

 private:
  std::uint32_t value_ = 0xFFFFFFFFu;
};

std::uint32_t checksum_of_characters(const std::function<std::string(const std::string&)>& make) {
  Checksum sum;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_utf8(text, c);
    if (c > 0) sum.add("\n");
    sum.add(make(text + "b"));
  }
  return sum.value();
}

JsonDocument component_of(const std::string& type, const std::string& fields = "") {
  return JsonDocument::parse(R"({"type":")" + type + "\"" + fields + "}", "component");
}

TEST(TokenizerKinds, TreatEveryCharacterAsTheLibraryDoes) {
  const std::string bert = R"(,"clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true)";
  for (const std::string type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "BertNormalizer"}) {
    const JsonDocument document = component_of(type, type == "BertNormalizer" ? bert : "");
    const Normalizer normalizer(document.root());
    EXPECT_EQ(checksum_of_characters([&](const std::string& text) { return normalizer.normalized(text); }),
              kinds()["checksums"][type])
        << type;
  }
  RegexMemory memory;
  for (const std::string type : {"Punctuation", "Digits", "Whitespace", "WhitespaceSplit"}) {
    const JsonDocument document = component_of(type, type == "Digits" ? R"(,"individual_digits":true)" : "");
    const PreTokenizer pre_tokenizer(document.root());
    const auto pieces = [&](const std::string& text) {
      std::string joined;
      pre_tokenizer.split({text, true}, memory,
                          [&](std::string_view piece) { joined += (joined.empty() ? "" : "|") + std::string(piece); });
      return joined;
    };
    EXPECT_EQ(checksum_of_characters(pieces), kinds()["checksums"][type]) << type;
  }
}

TEST(TokenizerKinds, TakeLongTextsWithoutSpacesInLinearTime) {  // quadratic time would run into the limit of the test
  for (const json& kind : kinds()["kinds"]) {
    const Tokenizer tokenizer = load_kind(kind);
    for (const std::string_view unit : {"a", "ab", "\u4E2D", " ", "\u0301", "<x>"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      EXPECT_NO_THROW(tokenizer.decode(tokenizer.encode(text))) << kind["name"];
    }
  }
}

TEST(TokenizerKinds, SpellAnyBytesWhereTheVocabularyHasThem) {
  for (const char* name : {"llama 2", "mistral", "gemma", "unigram with bytes"}) {
    const Tokenizer tokenizer = kind_named(name);
    const KindIds ids = tokenizer.encode("\xFF\xFE\x80", false);
    EXPECT_EQ(tokenizer.decode_bytes(ids), "\xFF\xFE\x80") << name;
    EXPECT_EQ(tokenizer.decode(ids), "\uFFFD\uFFFD\uFFFD") << name;
  }
  EXPECT_EQ(kind_named("falcon 3").decode_bytes(kind_named("falcon 3").encode("a\xFF b", false)), "a\xFF b");
}

// A byte of a run waits, as the ones after it may make it a character or spoil it; other text comes at once.
TEST(TokenizerKinds, StreamBytesAsTheirRunEnds) {
  const Tokenizer tokenizer = kind_named("llama 2");
  const auto id = [&](std::string_view name) { return tokenizer.token_to_id(name).value(); };
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(id("\u2581")), "");  // the space before the first word
  EXPECT_EQ(stream.push(id("a")), "a");
  EXPECT_EQ(stream.push(id("<0xC3>")), "");
  EXPECT_EQ(stream.push(id("<0xA9>")), "");
  EXPECT_EQ(stream.push(id("b")), "\u00E9b");
  EXPECT_EQ(stream.push(id("<0xC3>")), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST(TokenizerKinds, NameTheWordThatAVocabularyWithoutUnknownTokenLacks) {
  const json file = {{"model", {{"type", "WordLevel"}, {"vocab", {{"a", 0}}}, {"unk_token", "<unk>"}}}};
  const Tokenizer tokenizer = load(file);
  EXPECT_EQ(tokenizer.encode("a"), KindIds{0});
  expect_error(Status::unsupported, {"<unk>", "\"b\""}, [&] { tokenizer.encode("b"); });
}

// Ids are those that the library gives, which reads the file's only to compare.
TEST(TokenizerKinds, NumberAddedTokensAsTheLibraryDoes) {
  json token = {{"id", 9},         {"content", "<x>"},    {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", false}};
  json file = {{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", json::array()}}},
               {"added_tokens", {token}}};
  EXPECT_EQ(load(file).token_to_id("<x>"), 2);
  token["content"] = "b";
  file["added_tokens"].push_back(token);
  file["added_tokens"].push_back(token);  // twice
  EXPECT_EQ(load(file).encode("<x>b"), (KindIds{2, 1}));
}

}  // namespace
}  // namespace cermet::test
