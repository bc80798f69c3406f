// XXH3-128: names what is stored and detects damage. Not cryptographic: keys are also compared in full.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cermet {

/// 32 hexadecimal digits.
std::string digest(std::span<const std::byte> bytes);
inline std::string digest(std::string_view text) { return digest(std::as_bytes(std::span(text))); }

}  // namespace cermet
