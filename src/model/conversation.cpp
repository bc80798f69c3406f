#include "model/conversation.hpp"

#include "base/error.hpp"

namespace cermet {

void Conversation::settle() {
  if (!unsettled().empty()) engine_->prefill(0, unsettled(), Engine::Memory::device);
}

Generation Conversation::go_on(std::span<const std::int32_t> prompt, const GenerateOptions& options,
                               const std::function<void(std::int32_t)>& on_token) {
  require(!prompt.empty(), "prompt: expected at least one token, found none");
  const std::vector<std::int32_t> earlier = said_;
  const std::int64_t settled = engine_->length(0);
  std::vector<std::int32_t> text(unsettled().begin(), unsettled().end());
  text.insert(text.end(), prompt.begin(), prompt.end());
  bool heard_prompt = false;
  const auto hear_prompt = [&] {
    if (!heard_prompt) heard(prompt);
    heard_prompt = true;
  };
  const auto take = [&](std::int32_t id) {
    hear_prompt();
    said_.push_back(id);
    if (on_token) on_token(id);
  };
  try {
    Generation result = generate(*engine_, text, options, take, earlier);
    hear_prompt();
    result.prompt_tokens = std::ssize(prompt);
    return result;
  } catch (...) {
    // A prompt that was not read to its end was not said.
    if (engine_->length(0) == settled + std::ssize(text)) hear_prompt();
    if (!heard_prompt) engine_->drop(0, engine_->length(0) - settled);
    throw;
  }
}

}  // namespace cermet
