// Text in pages that are written in Markdown.
#pragma once

#include <string>
#include <string_view>

namespace cermet {

/// Text inside a table's cell: a bar would end it.
inline std::string table_cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace cermet
