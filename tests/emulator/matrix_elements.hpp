// Elements of matrix products as floats, or integers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/emulator/float_formats.hpp"

namespace cermet::emulator {

enum class Element : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, unknown };

inline Element element_named(std::string_view name) {
  constexpr std::string_view names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8"};
  for (std::size_t i = 0; i < 7; ++i)
    if (names[i] == name) return static_cast<Element>(i);
  return Element::unknown;
}

inline unsigned bytes_of(Element e) { return e == Element::tf32 ? 4 : e == Element::f16 || e == Element::bf16 ? 2 : 1; }
inline bool is_integer(Element e) { return e == Element::s8 || e == Element::u8; }

/// Floats of 8 or 16 bits by their bits.
inline const float* float_table(Element e) {
  static const auto tables = [] {
    std::vector<std::vector<float>> made(5);
    for (std::uint32_t b = 0; b < 65536; ++b) made[0].push_back(half_to_float(static_cast<std::uint16_t>(b)));
    for (std::uint32_t b = 0; b < 256; ++b) made[3].push_back(static_cast<float>(decode_float(b, e4m3_format)));
    for (std::uint32_t b = 0; b < 256; ++b) made[4].push_back(static_cast<float>(decode_float(b, e5m2_format)));
    return made;
  }();
  return tables[static_cast<std::size_t>(e)].data();
}

/// Element `i` of some bytes.
inline float element_at(const std::byte* bytes, Element e, unsigned i) {
  switch (e) {
    case Element::f16:
    case Element::bf16: {
      std::uint16_t bits;
      std::memcpy(&bits, bytes + 2 * i, sizeof bits);
      return e == Element::bf16 ? bfloat_to_float(bits) : float_table(e)[bits];
    }
    case Element::tf32: {
      std::uint32_t bits;
      std::memcpy(&bits, bytes + 4 * i, sizeof bits);
      return std::bit_cast<float>(bits & 0xffffe000u);
    }
    case Element::e4m3:
    case Element::e5m2: return float_table(e)[static_cast<std::uint8_t>(bytes[i])];
    case Element::s8: return static_cast<float>(static_cast<std::int8_t>(bytes[i]));
    default: return static_cast<float>(static_cast<std::uint8_t>(bytes[i]));
  }
}

}  // namespace cermet::emulator
