// A value of the only symbol of most graphs.
#pragma once

#include "base/symbol.hpp"

namespace cermet {

inline SymbolValues tokens(std::int64_t n) {
  SymbolValues values;
  values.set(Symbol("T"), n);
  return values;
}

}  // namespace cermet
