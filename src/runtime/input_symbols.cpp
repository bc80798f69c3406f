#include "runtime/input_symbols.hpp"

#include <set>
#include <utility>

#include "base/error.hpp"

namespace cermet {
namespace {

/// The value of one symbol that gives a dimension this size while the others have `values`; nothing where none does.
std::optional<std::int64_t> solved(const Dim& dim, const Symbol& symbol, SymbolValues values, std::int64_t size) {
  const auto at = [&](std::int64_t value) {
    values.set(symbol, value);
    return dim.value(values);
  };
  const std::int64_t factor = at(2) - at(1), offset = at(1) - factor;
  if (factor == 0 || (size - offset) % factor != 0 || at((size - offset) / factor) != size) return {};
  return (size - offset) / factor;
}

/// The symbol of a dimension that is not known yet, where it is the only one.
std::optional<Symbol> unknown_symbol(const Dim& dim, const std::set<Symbol>& known) {
  std::vector<Symbol> unknown = dim.symbols();
  std::erase_if(unknown, [&](const Symbol& symbol) { return known.contains(symbol); });
  return unknown.size() == 1 ? std::optional(unknown[0]) : std::nullopt;
}

}  // namespace

SymbolValues symbols_of_shapes(std::span<const ShapedInput> inputs, std::span<const Symbol> used) {
  for (const ShapedInput& input : inputs)
    if (!input.shape)
      fail(Status::invalid_argument, "input '{}': expected memory of type {}, found none bound", input.name,
           input.type.to_string());
  SymbolValues values;
  std::set<Symbol> known;
  // A dimension that is the symbol determines it always; others, such as min(T,8), for some values only.
  for (const ShapedInput& input : inputs)
    for (int axis = 0; axis < input.type.rank(); ++axis) {
      const Dim& d = input.type.dims[static_cast<std::size_t>(axis)];
      const std::optional<Symbol> symbol = unknown_symbol(d, known);
      if (!symbol || !d.is(*symbol)) continue;
      values.set(*symbol, (*input.shape)[axis]);
      known.insert(*symbol);
    }
  for (bool progress = true; std::exchange(progress, false);) {
    for (const ShapedInput& input : inputs) {
      for (int axis = 0; axis < input.type.rank(); ++axis) {
        const Dim& d = input.type.dims[static_cast<std::size_t>(axis)];
        const std::optional<Symbol> symbol = unknown_symbol(d, known);
        if (!symbol) continue;
        const std::optional<std::int64_t> value = solved(d, *symbol, values, (*input.shape)[axis]);
        if (!value)
          fail(Status::invalid_argument, "input '{}': expected {} for some {}, found {}", input.name,
               input.type.to_string(), symbol->name(), input.shape->to_string());
        values.set(*symbol, *value);
        known.insert(*symbol);
        progress = true;
      }
    }
  }
  for (const Symbol& symbol : used)
    require(known.contains(symbol), "symbol '{}': expected an input whose shape tells its value, found none",
            symbol.name());
  for (const ShapedInput& input : inputs) {
    const Shape expected = cermet::bind(input.type.dims, values);
    if (expected != *input.shape)
      fail(Status::invalid_argument, "input '{}': expected {} = {}, as other inputs have it, found {}", input.name,
           input.type.to_string(), expected.to_string(), input.shape->to_string());
  }
  return values;
}

}  // namespace cermet
