#include "base/utf8_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

using namespace std::string_view_literals;

/// Marks at the start of a file, longest first, with iconv's name of the encoding.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> encoding_marks{
    {{"\xFF\xFE\0\0"sv, "UTF-32"}, {"\0\0\xFE\xFF"sv, "UTF-32"}, {"\xFF\xFE"sv, "UTF-16"}, {"\xFE\xFF"sv, "UTF-16"}}};

/// ": the file is UTF-16 ...", or nothing where only the byte is known.
std::string encoding_hint(std::string_view text) {
  const auto mark =
      std::ranges::find_if(encoding_marks, [&](const auto& each) { return text.starts_with(each.first); });
  if (mark == encoding_marks.end()) return "";
  return fmt::format(": it begins with the byte order mark of {0}; convert it, e.g. with iconv -f {0} -t UTF-8",
                     mark->second);
}

[[noreturn]] void refuse_byte(std::string_view text, std::size_t at, std::string_view name) {
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  fail(Status::invalid_file, "{}:{}: expected text in UTF-8, found the byte 0x{:02x} at offset {}{}", name, line,
       static_cast<unsigned char>(text[at]), at, encoding_hint(text));
}

}  // namespace

void require_utf8(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    if (!unit.valid) refuse_byte(text, at, name);
    at += unit.size;
  }
}

std::string_view text_of_file(std::string_view bytes, std::string_view name) {
  require_utf8(bytes, name);
  if (const std::size_t zero = bytes.find('\0'); zero != std::string_view::npos) refuse_byte(bytes, zero, name);
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return bytes.starts_with(mark) ? bytes.substr(mark.size()) : bytes;
}

}  // namespace cermet
