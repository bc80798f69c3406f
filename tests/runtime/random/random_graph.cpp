#include "tests/runtime/random/maker.hpp"

namespace cermet::test {

SymbolValues RandomGraph::maximum() const {
  SymbolValues values;
  values.set(Symbol("T"), most_tokens);
  return values;
}

RandomGraph random_graph(std::uint64_t seed) { return Maker(seed).take(); }

}  // namespace cermet::test
