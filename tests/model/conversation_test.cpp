// Turns of a conversation: each knows all that was said before.
#include "model/conversation.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/model/tokenizer_cases.hpp"

namespace cermet::test {
namespace {

using Said = std::vector<std::int32_t>;

Engine chat_engine(std::int64_t context = 256, const std::function<void(EngineOptions&)>& change = {}) {
  EngineOptions options;
  options.dtype = DType::f32;
  options.threads = 2;
  options.max_context = context;
  if (change) change(options);
  return Engine::load(model_data / "chat", options);
}

GenerateOptions answer_of(std::int64_t tokens, double penalty = 1) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  options.sampling.repetition_penalty = penalty;
  return options;
}

/// What an engine says that is given everything at once.
Said at_once(const Said& text, const GenerateOptions& options) {
  Engine engine = chat_engine();
  return generate(engine, text, options).ids;
}

void append(Said& said, const Said& more) { said.insert(said.end(), more.begin(), more.end()); }

// Expected tokens are those of transformers, given all of the text.
TEST(Conversation, KeepsTheLastTokenOfAnAnswerThatItsLengthCutOff) {
  const Tokenizer tokenizer = Tokenizer::load(model_data / "chat/tokenizer.json");
  const std::vector<std::pair<std::int64_t, std::vector<Said>>> cases = {
      {6, {{148, 366, 317, 194, 364, 11}, {38, 56, 17, 358, 1, 199}, {72, 19, 379, 302, 380, 364}}},
      {1, {{148}, {5}, {72}}}};
  for (const auto& [tokens, answers] : cases) {
    Engine engine = chat_engine();
    Conversation conversation(engine);
    std::size_t turn = 0;
    for (const char* line : {"The quick brown fox", "jumps over", "the lazy dog"}) {
      const Generation made = conversation.go_on(tokenizer.encode(line, turn == 0), answer_of(tokens));
      EXPECT_EQ(made.ids, answers[turn]) << line;
      EXPECT_EQ(made.prompt_tokens, std::ssize(tokenizer.encode(line, turn == 0)));
      ++turn;
    }
  }
}

TEST(Conversation, PenaltiesKnowEarlierTurns) {
  for (const bool rows : {false, true}) {
    Engine engine = chat_engine(256, [&](EngineOptions& options) {
      if (rows) options.fusion.super_kernel.select = "decode";
    });
    Conversation conversation(engine);
    Said said;
    for (const Said& prompt : {Said{7, 8, 9}, Said{20}, Said{21, 22}}) {
      append(said, prompt);
      const Said expected = at_once(said, answer_of(9, 1.5));
      EXPECT_EQ(conversation.go_on(prompt, answer_of(9, 1.5)).ids, expected) << rows;
      append(said, expected);
    }
    EXPECT_EQ(conversation.length(), std::ssize(said));
  }
}

TEST(Conversation, GoesOnAfterEveryEnd) {
  for (const bool rows : {false, true}) {
    Engine engine = chat_engine(256, [&](EngineOptions& options) {
      if (rows) options.steps_per_launch = 4;
    });
    Conversation conversation(engine);
    Said said{7, 8, 9};
    GenerateOptions stops = answer_of(12);
    const Said whole = at_once(said, answer_of(12));
    stops.stop_ids = {whole[5]};
    const Generation stopped = conversation.go_on(said, stops);
    EXPECT_EQ(stopped.end, Generation::End::stop);
    append(said, stopped.ids);  // without the token that stopped it

    std::atomic<bool> cancelled{false};
    GenerateOptions cancels = answer_of(40);
    cancels.cancelled = &cancelled;
    append(said, {30});
    append(said, conversation.go_on(Said{30}, cancels, [&](std::int32_t) { cancelled = true; }).ids);

    append(said, {31});
    const auto fails = [&](std::int32_t id) {
      said.push_back(id);
      if (said.size() % 3 == 0) throw std::runtime_error("enough");
    };
    EXPECT_THROW(conversation.go_on(Said{31}, answer_of(40), fails), std::runtime_error);

    append(said, conversation.go_on(Said{32}, answer_of(0)).ids);
    append(said, {32, 33});
    EXPECT_EQ(conversation.go_on(Said{33}, answer_of(5)).ids, at_once(said, answer_of(5))) << rows;
  }
}

TEST(Conversation, ARefusedPromptWasNotSaid) {
  Engine engine = chat_engine(32);
  Conversation conversation(engine);
  Said said{7, 8, 9};
  append(said, conversation.go_on(said, answer_of(4)).ids);
  const std::int64_t length = conversation.length();
  EXPECT_THROW(conversation.go_on(Said{1, 4000}, answer_of(2)), Error);
  EXPECT_THROW(conversation.go_on(Said(40, 5), answer_of(2)), Error);
  EXPECT_THROW(conversation.go_on(Said{}, answer_of(2)), Error);
  EXPECT_EQ(conversation.length(), length);
  append(said, {10});
  EXPECT_EQ(conversation.go_on(Said{10}, answer_of(3)).ids, at_once(said, answer_of(3)));
}

TEST(Conversation, SettlesForThoseWhoAppendThemselves) {
  Engine engine = chat_engine();
  Conversation conversation(engine);
  Said said{7, 8, 9};
  append(said, conversation.go_on(said, answer_of(4)).ids);
  EXPECT_EQ(engine.length(0), std::ssize(said) - 1);
  conversation.settle();
  EXPECT_EQ(engine.length(0), std::ssize(said));
  const Said more{11, 12};
  const SequenceTokens part{0, more};
  engine.forward({&part, 1}, Engine::Logits::last);
  conversation.heard(more);
  append(said, more);
  append(said, {13});
  EXPECT_EQ(conversation.go_on(Said{13}, answer_of(3)).ids, at_once(said, answer_of(3)));
  engine.reset(0);
  conversation.forget();
  EXPECT_EQ(conversation.go_on(Said{7, 8, 9}, answer_of(3)).ids, at_once({7, 8, 9}, answer_of(3)));
}

}  // namespace
}  // namespace cermet::test
