// Values and ranges of symbols.
#include <algorithm>

#include "base/symbol.hpp"

namespace cermet {

void SymbolValues::set(const Symbol& symbol, std::int64_t value) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (first_[i].symbol != symbol) continue;
    first_[i].value = value;
    return;
  }
  for (Entry& entry : overflow_) {
    if (entry.symbol != symbol) continue;
    entry.value = value;
    return;
  }
  if (size_ < first_.size()) first_[size_++] = {symbol, value};
  else overflow_.push_back({symbol, value});
}

std::int64_t SymbolValues::operator[](const Symbol& symbol) const {
  for (std::size_t i = 0; i < size_; ++i)
    if (first_[i].symbol == symbol) return first_[i].value;
  for (const Entry& entry : overflow_)
    if (entry.symbol == symbol) return entry.value;
  return 0;
}

DimRange range_of(const SymbolRanges& ranges, const Symbol& symbol) {
  const auto at = std::find_if(ranges.begin(), ranges.end(), [&](const SymbolRange& r) { return r.symbol == symbol; });
  return at == ranges.end() ? DimRange{} : at->range;
}

}  // namespace cermet
