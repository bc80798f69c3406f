#include "model/parallel/ranks.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cermet {
namespace {

using Kind = RankCommand::Kind;

/// Of a part of the batch: how many tokens, and below that in the same word the length of its text, so that a command
/// fits one message.
std::int64_t word_of(const SequenceTokens& part) { return std::ssize(part.tokens) << 32 | part.length; }
std::size_t tokens_of(std::int64_t word) { return static_cast<std::size_t>(word >> 32); }
std::int64_t length_of(std::int64_t word) { return word & 0xFFFFFFFF; }

/// Kind, sequence and tokens, then a sequence and a word for each part of the batch.
std::string to_message(const RankCommand& command) {
  std::vector<std::int64_t> words{static_cast<std::int64_t>(command.kind), command.sequence, command.tokens};
  for (const SequenceTokens& part : command.batch) words.insert(words.end(), {part.sequence, word_of(part)});
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0])};
}

std::vector<std::int64_t> words_of(std::string_view message) {
  std::vector<std::int64_t> words(message.size() / sizeof(std::int64_t));
  CERMET_ASSERT(words.size() >= 3 && words.size() * sizeof(words[0]) == message.size());
  std::memcpy(words.data(), message.data(), message.size());
  return words;
}

/// The engine of another rank runs the same pass with ids that the graph replaces.
void follow_forward(Engine& engine, std::span<const std::int64_t> words, Kind kind, Engine::Logits which) {
  std::vector<SequenceTokens> batch;
  std::size_t most = 0;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) most = std::max(most, tokens_of(words[i + 1]));
  const std::vector<std::int32_t> ids(most);
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    batch.push_back(
        {static_cast<int>(words[i]), std::span(ids).first(tokens_of(words[i + 1])), length_of(words[i + 1])});
  if (kind == Kind::forward_chosen) {
    std::vector<int> sequences;
    for (const SequenceTokens& part : batch) sequences.push_back(part.sequence);
    engine.forward_chosen(sequences, which);
    return;
  }
  engine.forward(batch, which, Engine::Memory::device);
}

}  // namespace

Ranks::~Ranks() { end(); }

void Ranks::end() noexcept {
  if (!leads() || std::exchange(ended_, true)) return;
  try {
    if (communicator_->failure().empty()) tell({});  // else all ranks know the reason
  } catch (const std::exception& error) {
    log().warn("ranks: not all ended as they should: {}", error.what());
  }
}

void Ranks::tell(const RankCommand& command) {
  if (!leads()) return;
  communicator_->gather_text(to_message(command));
}

void Ranks::serve(Engine& engine) {
  for (;;) {
    const std::vector<std::int64_t> words = words_of(communicator_->gather_text({}).front());
    const auto kind = static_cast<Kind>(words[0]);
    const int sequence = static_cast<int>(words[1]);
    switch (kind) {
      case Kind::end: return;
      case Kind::forward:
      case Kind::forward_chosen:
        follow_forward(engine, std::span(words).subspan(3), kind, static_cast<Engine::Logits>(words[2]));
        break;
      case Kind::drop: engine.drop(sequence, words[2]); break;
      case Kind::reset: engine.reset(sequence); break;
      case Kind::timing: engine.set_timing(words[2] != 0); break;
    }
  }
}

void Ranks::start(std::vector<std::unique_ptr<Communicator>> others,
                  const std::function<void(std::unique_ptr<Communicator>)>& follow) {
  for (std::unique_ptr<Communicator>& other : others)
    threads_.emplace_back([follow, other = std::move(other)]() mutable { follow(std::move(other)); });
}

}  // namespace cermet
