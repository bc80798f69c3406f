// Prompts that a quantizer is calibrated on, as files hold them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace cermet {

struct PromptOptions {
  std::int64_t samples = 50;     ///< prompts at most; of a longer file, spread evenly over it
  std::int64_t length = 128;     ///< tokens of a prompt at most
  bool prompt_per_line = false;  ///< of a text file: each line is a prompt; otherwise it is running text, cut into
                                 ///< pieces of `length` tokens
};

/// Reads prompts: of a file called *.jsonl every line is an object with "text", "prompt" or "messages" (a list of
/// objects with "content", joined by line breaks), or "ids", token ids that need no tokenizer; any other file is text
/// in UTF-8. Blank lines are skipped. Every prompt of text begins as the tokenizer begins a text (with its first
/// special token, where it has one). `tokenizer` may be null: text is refused then. Throws Error naming file and line
/// where one is broken, or the file where it holds no prompt.
std::vector<std::vector<std::int32_t>> read_prompts(const std::filesystem::path& path, const Tokenizer* tokenizer,
                                                    const PromptOptions& options);

}  // namespace cermet
