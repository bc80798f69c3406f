// The spelling of bytes in byte-level vocabularies: each of the 256 bytes is written as one visible character (Radford
// et al., GPT-2, 2019).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cermet {

/// The bytes that a token's name spells, or nothing where it has a character that stands for no byte.
std::optional<std::string> bytes_of_name(std::string_view name);

/// The name that spells the bytes; inverse of bytes_of_name.
std::string name_of_bytes(std::string_view bytes);

}  // namespace cermet
