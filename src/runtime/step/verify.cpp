#include "graph/verify.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::verify(Compilation& c) {
  cermet::verify(c.graph());
  std::set<Symbol> used;
  for (const Value& value : c.graph().values())
    for (const Dim& d : value.type.dims)
      if (!d.is_constant()) std::ranges::copy(d.symbols(), std::inserter(used, used.end()));
  const SymbolValues& maximum = c.options.maximum;
  for (const Symbol& id : used)
    require(maximum[id] > 0, "symbol '{}': expected a maximum of at least 1 to compile for, found {}", id.name(),
            maximum[id]);
  c.state->memory.used_symbols.assign(used.begin(), used.end());
  c.state->memory.maximum = maximum;
  return fmt::format("{} nodes, {} values", c.graph().nodes().size(), c.graph().values().size());
}

}  // namespace cermet
