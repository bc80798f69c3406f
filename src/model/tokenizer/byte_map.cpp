#include "model/tokenizer/byte_map.hpp"

#include <array>
#include <cstdint>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Printable bytes of Latin-1 stand for themselves; the others are numbered from U+0100 in order.
constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr unsigned first_number = 0x100, mapped_characters = first_number + 68;  // 68 bytes do not stand for themselves

struct Tables {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, mapped_characters> byte{};  ///< -1: stands for no byte
};

constexpr Tables tables = [] {
  Tables t;
  t.byte.fill(-1);
  char32_t next = first_number;
  for (unsigned byte = 0; byte < 256; ++byte) {
    t.character[byte] = stands_for_itself(byte) ? byte : next++;
    t.byte[t.character[byte]] = static_cast<std::int16_t>(byte);
  }
  return t;
}();

}  // namespace

std::optional<std::string> bytes_of_name(std::string_view name) {
  std::string bytes;
  while (!name.empty()) {
    const Utf8Unit unit = first_utf8_unit(name);
    if (!unit.valid || unit.code_point >= mapped_characters || tables.byte[unit.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(tables.byte[unit.code_point]));
    name.remove_prefix(unit.size);
  }
  return bytes;
}

std::string name_of_bytes(std::string_view bytes) {
  std::string name;
  for (const char byte : bytes) append_utf8(name, tables.character[static_cast<unsigned char>(byte)]);
  return name;
}

}  // namespace cermet
