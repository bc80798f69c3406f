// Files that are no tokenizer, that are damaged, or that ask for what does not end.
#include <algorithm>
#include <random>

#include "base/text.hpp"
#include "tests/model/tokenizer_cases.hpp"

namespace cermet::test {
namespace {

TEST(Tokenizer, RefusesEveryBadFile) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(tokenizer_data / "bad")) files.push_back(entry.path());
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
    expect_error(Status::invalid_file, {"tokenizer.json: "},
                 [&] { Tokenizer::load(scratch.file("tokenizer.json", content)); });
  }
  expect_error(Status::invalid_file, {"nested at most"},
               [&] { Tokenizer::load(scratch.file("tokenizer.json", std::string(1 << 20, '['))); });
  expect_error(Status::io, {"absent.json: expected a file, found none"},
               [&] { Tokenizer::load(scratch / "absent.json"); });
}

TEST(Tokenizer, StopsAnExpressionThatDoesNotEnd) {
  json parts = cases()["tokenizers"][0]["parts"];
  parts["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(?:a|a)+(?:a|a)+(?:a|a)+b"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})");
  const Tokenizer tokenizer = load(assemble(parts));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aaab")), "aaab");
  std::string endless(60, 'a');
  endless += "cb";
  expect_error(Status::unsupported, {"matches in time"}, [&] { tokenizer.encode(endless); });
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
    if (vocab.contains(merge[0].get<std::string>() + merge[1].get<std::string>()) && merges.size() < 14)
      merges.push_back(merge);
  }
  file["model"]["vocab"] = vocab;
  file["model"]["merges"] = merges;
  const std::string whole = file.dump();
  const ScratchFolder scratch;
  ASSERT_NO_THROW(Tokenizer::load(scratch.file("tokenizer.json", whole)));

  std::mt19937 random(4);
  const std::vector<std::string_view> splices = {"null", "-1",   "1e9", "99999999999", "\"\"", "[]",
                                                 "{}",   "true", "[[",  "\"a\"",       "(",    ")",
                                                 "[",    "*",    "\\",  "\xFF",        ",",    "{1,9}"};
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
          const std::size_t begin = text.find(':', at),
                            end = begin == std::string::npos ? begin : text.find_first_of(",}]", begin);
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

}  // namespace
}  // namespace cermet::test
