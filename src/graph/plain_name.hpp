// Names in the text form of graphs: letters, digits and _.:/- as they are, everything else in quotes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace cermet {

inline bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:/-").find(c) != std::string_view::npos;
}

inline std::string name_text(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
  return plain ? std::string(name) : escape(name);
}

}  // namespace cermet
