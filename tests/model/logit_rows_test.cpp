// Engines that were loaded for the logits of last tokens alone.
#include <gtest/gtest.h>

#include <vector>

#include "model/engine.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

constexpr std::int64_t prompt_tokens = 40;

std::vector<std::int32_t> prompt_of_rows() {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < prompt_tokens; ++i) ids.push_back(100 + 7 * i);
  return ids;
}

Engine engine_with(bool all_logits) {
  EngineOptions options;
  options.max_sequences = 2;
  options.all_logits = all_logits;
  return Engine::load(demo, options);
}

TEST(LogitRows, OfLastTokensAreThoseOfAnEngineThatGivesAll) {
  const std::vector<std::int32_t> ids = prompt_of_rows();
  const SequenceTokens batch[] = {{0, ids}, {1, std::span(ids).first(3)}};
  std::vector<float> found[2];
  for (const bool all : {false, true}) {
    Engine engine = engine_with(all);
    const TensorView logits = engine.forward(batch, Engine::Logits::last);
    ASSERT_EQ(logits.shape, (Shape{2, engine.config().vocab_size}));
    const float* const first = logits.as<float>();
    found[all].assign(first, first + logits.elements());
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(LogitRows, OfLastTokensTakeLessMemory) {
  const std::vector<std::int32_t> ids = prompt_of_rows();
  std::int64_t bytes[2], vocabulary = 0;
  for (const bool all : {false, true}) {
    Engine engine = engine_with(all);
    engine.prefill(0, ids);
    bytes[all] = engine.last_executable().arena_bytes();
    vocabulary = engine.config().vocab_size;
  }
  // 512 tokens of a pass, of which two have logits. Other values of it may lie where those of the others would.
  EXPECT_LE(bytes[0], bytes[1] - 256 * vocabulary * static_cast<std::int64_t>(sizeof(float)));
}

TEST(LogitRows, OfAllTokensAreRefusedWithoutMemoryForThem) {
  const std::vector<std::int32_t> ids = prompt_of_rows();
  const SequenceTokens part{0, ids};
  Engine engine = engine_with(false);
  test::expect_error(Status::invalid_argument, {"logits: expected those of last tokens", "found all"}, [&] {
    engine.forward({&part, 1}, Engine::Logits::all);
  });
  EXPECT_EQ(engine.length(0), 0);
  EXPECT_NO_THROW(engine.forward({&part, 1}, Engine::Logits::last));
}

}  // namespace
}  // namespace cermet
