// A conversation in slot 0 of an engine: turns of prompt and answer, each after all that was said before.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/generate.hpp"

namespace cermet {

/// Knows every token that was said, also those that no pass has taken yet: the last one of an answer that its length
/// cut off. The next turn begins with them, and its repetition penalty knows the earlier turns.
class Conversation {
 public:
  /// In the empty slot 0. The engine must outlive it.
  explicit Conversation(Engine& engine) : engine_(&engine) {}

  /// Says the prompt and continues it; as generate().
  Generation go_on(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   const std::function<void(std::int32_t)>& on_token = {});
  /// Makes a pass of what none has taken yet, so that others can append to the sequence. Throws Error where the cache
  /// has no room.
  void settle();
  /// Tokens that others have appended to the settled sequence.
  void heard(std::span<const std::int32_t> tokens) { said_.insert(said_.end(), tokens.begin(), tokens.end()); }
  /// The sequence was reset.
  void forget() { said_.clear(); }
  /// Tokens that were said.
  std::int64_t length() const { return std::ssize(said_); }

 private:
  std::span<const std::int32_t> unsettled() const {
    return std::span(said_).subspan(static_cast<std::size_t>(engine_->length(0)));
  }

  Engine* engine_;
  std::vector<std::int32_t> said_;
};

}  // namespace cermet
