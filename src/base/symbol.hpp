// Quantities that are bound when a graph runs, such as the token count "T": their names, values and ranges.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cermet {

/// A name, kept once for all who use it and freed with the last of them: comparing two for equality compares addresses.
class Symbol {
 public:
  Symbol() = default;  ///< no symbol
  /// A letter or underscore, then letters, digits and underscores; anything else throws Error(invalid_argument).
  /// Thread-safe.
  explicit Symbol(std::string_view name);
  const std::string& name() const { return *name_; }
  friend bool operator==(const Symbol&, const Symbol&) = default;
  friend bool operator<(const Symbol& a, const Symbol& b) { return a.name() < b.name(); }
  static std::size_t kept();  ///< names that somebody uses

 private:
  std::shared_ptr<const std::string> name_;
};

/// Values of symbols while a graph runs. Up to `inline_capacity` of them take no heap memory.
class SymbolValues {
 public:
  static constexpr std::size_t inline_capacity = 8;
  void set(const Symbol& symbol, std::int64_t value);
  /// 0 for a symbol that was not set.
  std::int64_t operator[](const Symbol& symbol) const;

 private:
  struct Entry {
    Symbol symbol;
    std::int64_t value = 0;
  };
  std::size_t size_ = 0;
  std::array<Entry, inline_capacity> first_;
  std::vector<Entry> overflow_;
};

/// What a quantity may be, both ends included.
struct DimRange {
  std::int64_t least = 0, greatest = std::numeric_limits<std::int64_t>::max();
  friend bool operator==(DimRange, DimRange) = default;
};

struct SymbolRange {
  Symbol symbol;
  DimRange range;
  friend bool operator==(const SymbolRange&, const SymbolRange&) = default;
};

/// Ranges of symbols; those that are not listed may be anything from 0.
using SymbolRanges = std::vector<SymbolRange>;
DimRange range_of(const SymbolRanges& ranges, const Symbol& symbol);

}  // namespace cermet
