// Text generation and evaluation on top of an engine.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/engine.hpp"
#include "model/sampling.hpp"

namespace cermet {

struct GenerateOptions {
  std::int64_t max_new_tokens = 128;
  Sampling sampling;
  std::vector<std::int32_t> stop_ids;            ///< generation ends after one of these
  const std::atomic<bool>* cancelled = nullptr;  ///< checked between tokens
  bool ignore_eos = false;                       ///< of stop_at_eos()

  void stop_at_eos(const ModelConfig& config) {
    if (!ignore_eos) stop_ids = config.eos_ids;
  }
};

struct Generation {
  std::vector<std::int32_t> ids;  ///< new tokens; a stop id that ended generation is not among them
  enum class End : std::uint8_t { length, stop, context, cancelled } end = End::length;
  std::int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;  ///< decode counts the tokens after the first
  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;  ///< 0 when fewer than two tokens were made
};

/// Continues the sequence in slot 0, which may already hold context; `prompt` is appended to it. Calls on_token after
/// every new token. `earlier`: what was said before the prompt, which a repetition penalty knows, too. The last token
/// of an answer that its length ends is in no pass and not in the context; a Conversation (model/conversation.hpp)
/// begins its next turn with it. Throws Error when the prompt is empty or does not fit the cache.
Generation generate(Engine& engine, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                    const std::function<void(std::int32_t)>& on_token = {}, std::span<const std::int32_t> earlier = {});

/// Throws Error where tokens cannot be chosen so by steps of one launch.
void check_steps(const Engine& engine, const Sampling& sampling);

/// "length", "stop", "context" or "cancelled".
std::string_view name_of(Generation::End end);

struct Perplexity {
  double value = 0;           ///< exp of the mean negative log-likelihood
  double standard_error = 0;  ///< of the perplexity, from the spread of the tokens' log-likelihoods (delta method)
  std::int64_t tokens = 0;    ///< tokens scored
  double seconds = 0;
};

/// Perplexity over consecutive windows; every token but a window's first is scored and the tail that fills no window is
/// dropped. Throws Error when the text is shorter than one window. `on_progress` gets windows done and in total.
Perplexity evaluate(Engine& engine, std::span<const std::int32_t> ids, std::int64_t window,
                    const std::atomic<bool>* cancelled = nullptr,
                    const std::function<void(std::int64_t done, std::int64_t total)>& on_progress = {});

}  // namespace cermet
