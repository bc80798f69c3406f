#include "graph/common_subexpressions.hpp"

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::merge_common_subexpressions(Compilation& c) {
  return c.replace_graph(cermet::merge_common_subexpressions(c.graph()));
}

}  // namespace cermet
