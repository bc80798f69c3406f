// Which sizes of a region with symbols were measured on their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet {

/// The tuning_text()s of a region with numbers in place of its symbols.
class SizedTexts {
 public:
  explicit SizedTexts(const Region& region);
  /// The symbols' values in a text; nothing where it is another region's.
  std::optional<SymbolValues> sizes_in(std::string_view text) const;

 private:
  /// What stands before a symbol, and after the last one.
  struct Piece {
    std::string before;
    std::optional<Symbol> symbol;
  };
  std::vector<Piece> pieces_;
};

}  // namespace cermet
