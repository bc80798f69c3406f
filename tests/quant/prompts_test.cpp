#include "quant/prompts.hpp"

#include "tests/model/scratch.hpp"

namespace cermet::test {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(CERMET_SOURCE_DIR "/models/demo/tokenizer.json");
  return tokenizer;
}

TEST(Prompts, RunningTextIsCutAndSpread) {
  const ScratchFolder scratch;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("word{} ", i);
  const auto file = scratch.file("text.txt", text);
  const std::vector<std::int32_t> ids = tokenizer().encode(text, false);
  const auto prompts = read_prompts(file, &tokenizer(), {.samples = 3, .length = 10});
  ASSERT_EQ(prompts.size(), 3u);
  const std::size_t pieces = ids.size() / 10;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>((2 * i + 1) * pieces / 6 * 10);
    EXPECT_EQ(prompts[i], std::vector<std::int32_t>(begin, begin + 10));
  }
  EXPECT_EQ(read_prompts(file, &tokenizer(), {.samples = 100000, .length = 10}).size(), pieces);
}

TEST(Prompts, LinesOfEveryKind) {
  const ScratchFolder scratch;
  const auto file = scratch.file("p.jsonl",
                                 "{\"text\": \"one two\"}\n\n{\"prompt\": \"one two\"}\r\n{\"messages\": [{\"role\": "
                                 "\"user\", \"content\": \"one\"}, "
                                 "{\"role\": \"assistant\", \"content\": \"two\"}], \"id\": 7}");
  const auto prompts = read_prompts(file, &tokenizer(), {});
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(prompts[0], tokenizer().encode("one two"));
  EXPECT_EQ(prompts[1], prompts[0]);
  EXPECT_EQ(prompts[2], tokenizer().encode("one\ntwo"));
  const auto lines =
      read_prompts(scratch.file("p.txt", "one two\n\nthree\n"), &tokenizer(), {.length = 2, .prompt_per_line = true});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), 2u);
}

TEST(Prompts, IdsNeedNoTokenizer) {
  const ScratchFolder scratch;
  const auto prompts =
      read_prompts(scratch.file("p.jsonl", "{\"ids\": [5, 6, 7]}\n{\"ids\": [8]}\n"), nullptr, {.length = 2});
  EXPECT_EQ(prompts, (std::vector<std::vector<std::int32_t>>{{5, 6}, {8}}));
  expect_error(Status::invalid_argument, {"p.jsonl:2", "--tokenizer", "ids"},
               [&] { read_prompts(scratch.file("p.jsonl", "{\"ids\": [5]}\n{\"text\": \"a\"}\n"), nullptr, {}); });
  expect_error(Status::invalid_argument, {"p.txt", "--tokenizer"},
               [&] { read_prompts(scratch.file("p.txt", "text"), nullptr, {}); });
  expect_error(Status::invalid_file, {"p.jsonl:1", "ids[1]", "-6"},
               [&] { read_prompts(scratch.file("p.jsonl", "{\"ids\": [5, -6]}\n"), nullptr, {}); });
}

TEST(Prompts, Mistakes) {
  const ScratchFolder scratch;
  const auto read = [&](std::string_view name, std::string_view content, PromptOptions options = {}) {
    const auto file = scratch.file(name, content);
    return [file, options] { read_prompts(file, &tokenizer(), options); };
  };
  expect_error(Status::invalid_file, {"p.jsonl:2"}, read("p.jsonl", "{\"text\": \"a\"}\n{\"text\": \n"));
  expect_error(Status::invalid_file, {"p.jsonl:1", "\"messages\" or \"ids\""},
               read("p.jsonl", "{\"content\": \"a\"}\n"));
  expect_error(Status::invalid_file, {"p.jsonl:1", "text", "a string", "3"}, read("p.jsonl", "{\"text\": 3}\n"));
  expect_error(Status::invalid_file, {"p.jsonl:1", "an object"}, read("p.jsonl", "[1]\n"));
  expect_error(Status::invalid_file, {"p.jsonl:2", "empty"}, read("p.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\"}\n"));
  expect_error(Status::invalid_file, {"p.jsonl", "at least one prompt"}, read("p.jsonl", "\n\n"));
  expect_error(Status::invalid_file, {"p.txt:2", "UTF-8", "0xff"}, read("p.txt", "a\n\xff"));
  expect_error(Status::invalid_file, {"p.txt", "at least 128 tokens"}, read("p.txt", "too short"));
  expect_error(Status::invalid_argument, {"length", "at least 2"}, read("p.txt", "a", {.length = 1}));
  expect_error(Status::io, {"absent.txt"}, [&] { read_prompts(scratch / "absent.txt", &tokenizer(), {}); });
  expect_error(Status::io, {"a folder"}, [&] { read_prompts(scratch.path(), &tokenizer(), {}); });
}

TEST(Prompts, TheDemosCalibrationIsNotWhatIsEvaluated) {
  const std::string heldout =
      content_of(CERMET_SOURCE_DIR "/models/demo/heldout.txt").substr(0, 290'000);  // more than the 260,000 characters
  const std::string calibration = content_of(CERMET_SOURCE_DIR "/models/demo/calibration.jsonl");
  const auto prompts =
      read_prompts(CERMET_SOURCE_DIR "/models/demo/calibration.jsonl", &tokenizer(), {.samples = 1000, .length = 1000});
  EXPECT_EQ(prompts.size(), 64u);
  for (const auto& prompt : prompts)
    EXPECT_EQ(heldout.find(tokenizer().decode_bytes(prompt).substr(100, 200)), std::string::npos);
}

}  // namespace
}  // namespace cermet::test
