// The demo model against what transformers computed for it: ids, greedy continuations, perplexity.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/json_file.hpp"
#include "model/generate.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

std::vector<std::int32_t> ids_of(const Json& list) {
  std::vector<std::int32_t> ids;
  for (const Json id : list) ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  return ids;
}

/// The first `characters` code points of the held-out text.
std::string heldout_text(std::size_t characters) {
  std::ifstream file(demo / "heldout.txt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && seen++ == characters) break;
  return text.substr(0, end);
}

Engine load_demo(DType dtype) {
  EngineOptions options;
  options.dtype = dtype;
  return Engine::load(demo, options);
}

TEST(Demo, PromptsContinueAsInTransformers) {
  const Tokenizer tokenizer = Tokenizer::load(demo / "tokenizer.json");
  Engine engine = load_demo(DType::f32);
  const JsonDocument document = JsonDocument::read(demo / "reference.json");
  for (const Json prompt : document.root().at("prompts")) {
    const std::vector<std::int32_t> ids = ids_of(prompt.at("ids")), expected = ids_of(prompt.at("greedy_ids"));
    EXPECT_EQ(tokenizer.encode(prompt.at("prompt").as_string()), ids);
    GenerateOptions options;
    options.max_new_tokens = static_cast<std::int64_t>(expected.size());
    engine.reset(0);
    EXPECT_EQ(generate(engine, ids, options).ids, expected) << prompt.at("prompt").as_string();
  }
}

/// 30 windows; the whole 152 are `cermet eval --chars 260000`, and in the long test below.
TEST(Demo, Bf16PerplexityIsWithinThreeTenthsOfAPercentOfFloat32) {
  const Tokenizer tokenizer = Tokenizer::load(demo / "tokenizer.json");
  const std::vector<std::int32_t> ids = tokenizer.encode(heldout_text(40000));
  Engine exact = load_demo(DType::f32), rounded = load_demo(DType::bf16);
  const double expected = evaluate(exact, ids, 512).value;
  EXPECT_NEAR(evaluate(rounded, ids, 512).value, expected, 0.003 * expected);
}

TEST(Demo, Int8WeightsAndActivationsKeepThePerplexityWithinHalfAPercent) {
  const Tokenizer tokenizer = Tokenizer::load(demo / "tokenizer.json");
  const std::vector<std::int32_t> ids = tokenizer.encode(heldout_text(10000));
  EngineOptions options;
  options.weights = DType::i8;
  Engine exact = load_demo(DType::bf16), quantized = Engine::load(demo, options);
  EXPECT_LT(quantized.weight_bytes(), exact.weight_bytes() * 3 / 4);
  const double expected = evaluate(exact, ids, 512).value;
  EXPECT_NEAR(evaluate(quantized, ids, 512).value, expected, 0.005 * expected);
}

TEST(Demo, CachesOfCodesKeepThePerplexityWithinHalfAPercent) {
  const Tokenizer tokenizer = Tokenizer::load(demo / "tokenizer.json");
  const std::vector<std::int32_t> ids = tokenizer.encode(heldout_text(20000));
  Engine exact = load_demo(DType::bf16);
  const double expected = evaluate(exact, ids, 512).value;
  for (const DType cache : {DType::i8, DType::f8_e4m3}) {
    EngineOptions options;
    options.kv_cache = cache;
    Engine engine = Engine::load(demo, options);
    EXPECT_LT(engine.cache_bytes(), exact.cache_bytes() * 9 / 16);
    EXPECT_NEAR(evaluate(engine, ids, 512).value, expected, 0.005 * expected) << name_of(cache);
  }
}

TEST(Demo, ACacheIsOfCodesOrOfTheOperandsType) {
  EngineOptions options;
  options.kv_cache = DType::f8_e5m2;
  EXPECT_EQ(error_text([&] { Engine::load(demo, options); }), "kv_cache: expected i8 or f8_e4m3, found f8_e5m2");
}

void expect_perplexity_of_transformers(std::string_view entry) {
  const Tokenizer tokenizer = Tokenizer::load(demo / "tokenizer.json");
  const JsonDocument document = JsonDocument::read(demo / "reference.json");
  const Json reference = document.root().at(entry);
  const std::vector<std::int32_t> ids =
      tokenizer.encode(heldout_text(static_cast<std::size_t>(reference.at("file_chars").as_integer())));
  Engine engine = load_demo(DType::f32);
  const Perplexity found = evaluate(engine, ids, 512);
  EXPECT_EQ(found.tokens, reference.at("tokens").as_integer());
  // Near enough to tell float32 rotary frequencies from those rounded to bf16, which are 1.2e-5 of it away.
  EXPECT_NEAR(found.value, reference.at("value").as_number(), 1e-5 * found.value);
}

TEST(Demo, Float32PerplexityOfTheStartIsThatOfTransformers) {
  expect_perplexity_of_transformers("perplexity_of_start");
}

TEST(LongDemo, Float32PerplexityIsThatOfTransformers) { expect_perplexity_of_transformers("perplexity"); }

}  // namespace
}  // namespace cermet
