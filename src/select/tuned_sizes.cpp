#include "select/tuned_sizes.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "select/tuning_key.hpp"

namespace cermet {
namespace {

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

SizedTexts::SizedTexts(const Region& region) {
  const std::string text = region.to_string() + constants_text(region);
  const std::set<Symbol> symbols = symbols_of(region);
  std::string before;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(at, std::max<std::size_t>(1, end - at));
    const auto symbol =
        end > at ? std::ranges::find_if(symbols, [&](const Symbol& s) { return s.name() == word; }) : symbols.end();
    if (symbol == symbols.end()) before += word;
    else pieces_.push_back({std::exchange(before, {}), *symbol});
    at += word.size();
  }
  pieces_.push_back({std::move(before), std::nullopt});
}

std::optional<SymbolValues> SizedTexts::sizes_in(std::string_view text) const {
  SymbolValues values;
  std::set<Symbol> known;
  for (const auto& [before, symbol] : pieces_) {
    if (!text.starts_with(before)) return std::nullopt;
    text.remove_prefix(before.size());
    if (!symbol) break;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || (!known.insert(*symbol).second && values[*symbol] != value))
      return std::nullopt;
    values.set(*symbol, value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(std::move(values)) : std::nullopt;
}

}  // namespace cermet
