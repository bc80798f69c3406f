#include "base/text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace cermet {
namespace {

/// How a character that starts with a given byte goes on: its size and the range of its second byte (Unicode 3.9, table
/// 3-7).
struct Lead {
  std::uint8_t size, second_min, second_max;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};  // a continuation, or an overlong form
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

constexpr std::array<Lead, 256> leads = [] {
  std::array<Lead, 256> table{};
  for (std::size_t i = 0; i < 256; ++i) table[i] = lead_of(static_cast<std::uint8_t>(i));
  return table;
}();

}  // namespace

Utf8Unit first_utf8_unit(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const Lead lead = leads[byte(0)];
  if (lead.size == 1) return {1, true, false, byte(0)};
  if (lead.size == 0) return {1, false, false, 0};
  char32_t code_point = byte(0) & (0x7Fu >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {i, false, true, 0};
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80, max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {i, false, false, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {lead.size, true, false, code_point};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto add = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | (code_point >> 6));
  } else if (code_point < 0x10000) {
    add(0xE0 | (code_point >> 12));
    add(0x80 | ((code_point >> 6) & 0x3F));
  } else {
    add(0xF0 | (code_point >> 18));
    add(0x80 | ((code_point >> 12) & 0x3F));
    add(0x80 | ((code_point >> 6) & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

std::string quote(std::string_view text, std::size_t longest) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(i));
    if (i + unit.size > longest) return out + "...\"";
    const std::string_view bytes = text.substr(i, unit.size);
    if (bytes == "\"" || bytes == "\\") out += '\\';
    if (unit.valid && unit.code_point >= 0x20 && (unit.code_point < 0x7F || unit.code_point > 0x9F)) {
      out += bytes;
    } else {
      for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    i += unit.size;
  }
  return out + '"';
}

std::string escape(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else out += c;
    }
  }
  return out + "\"";
}

std::optional<std::string> unescape(std::string_view quoted, std::size_t& size) {
  if (!quoted.starts_with('"')) return {};
  std::string out;
  for (std::size_t i = 1; i < quoted.size(); ++i) {
    if (quoted[i] == '"') {
      size = i + 1;
      return out;
    }
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    if (++i == quoted.size()) return {};
    if (quoted[i] == 'x') {
      unsigned byte = 0;
      const std::string_view digits = quoted.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || end != digits.data() + 2) return {};
      out += static_cast<char>(byte);
      i += 2;
      continue;
    }
    static constexpr std::string_view letters = "\"\\ntr", meant = "\"\\\n\t\r";
    const std::size_t known = letters.find(quoted[i]);
    if (known == std::string_view::npos) return {};
    out += meant[known];
  }
  return {};
}

}  // namespace cermet
