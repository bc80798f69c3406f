#include "graph/verify.hpp"

#include <set>

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::verify(Compilation& c) {
  cermet::verify(c.graph());
  std::set<SymbolId> used;
  for (const Value& value : c.graph().values())
    for (const Dim& d : value.type.dims)
      if (!d.is_constant()) used.insert(d.symbol());
  const SymbolValues& maximum = c.options.maximum;
  for (const SymbolId id : used)
    require(maximum.value[id] > 0, "symbol '{}': expected a maximum of at least 1 to compile for, found {}", symbol_name(id), maximum.value[id]);
  c.state->used_symbols.assign(used.begin(), used.end());
  c.state->maximum = maximum;
  return fmt::format("{} nodes, {} values", c.graph().nodes().size(), c.graph().values().size());
}

}  // namespace cermet
