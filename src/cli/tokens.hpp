// Token ids as a user writes them, and the tokenizer beside a model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace cermet::cli {

/// Non-negative integers separated by commas or white space, in brackets or not: "1,2,3", "[1, 2, 3]". `name` stands
/// for the list in messages. Throws Error naming the position and what was found there.
std::vector<std::int32_t> parse_ids(std::string_view name, std::string_view text);
/// Throws Error(invalid_argument) naming the first id outside a vocabulary.
void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab_size);

/// Reads MODEL/tokenizer.json; nothing where there is none. Throws Error naming MODEL where it is not a folder, or the
/// file where it is broken.
std::optional<Tokenizer> find_tokenizer(const std::string& model);
/// The same; throws Error where there is none. `needed_for` says why it is wanted.
Tokenizer load_tokenizer(const std::string& model, std::string_view needed_for);

}  // namespace cermet::cli
