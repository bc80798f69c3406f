#include "base/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace cermet {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

std::string_view closest_name(std::string_view word, std::span<const std::string_view> known) {
  const std::size_t most = word.size() <= 5 ? 1 : word.size() <= 8 ? 2 : 3;
  std::string_view best;
  std::size_t least = most + 1;
  for (const std::string_view name : known) {
    const std::size_t changes = edit_distance(word, name);
    if (changes < least) best = name, least = changes;
  }
  return best;
}

}  // namespace cermet
