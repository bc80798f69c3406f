// What is to be tuned, and the sizes at which it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet {

struct TuneJob {
  Region region;              ///< for its target; symbols have their maximum
  std::int64_t least = 1;     ///< value of its symbol, where it has one, down to which its launches go
  std::int64_t launches = 1;  ///< of a pass that it stands for, for readers
};

/// The region with constant dimensions: each symbol has this value.
Region with_sizes(const Region& region, const SymbolValues& values);
/// The same at the symbols' maxima.
Region without_symbols(const Region& region);
/// The symbol of its dimensions, where there is one and no other.
std::optional<Symbol> only_symbol(const Region& region);
/// Values of the symbols at which a choice for the region must not be slower than without tuning: the maxima; where
/// there is one symbol also a quarter, a sixteenth, and the job's least.
std::vector<SymbolValues> sizes_of(const TuneJob& job);

}  // namespace cermet
