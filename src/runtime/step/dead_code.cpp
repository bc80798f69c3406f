#include "graph/dead_code.hpp"

#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::remove_dead_code(Compilation& c) { return c.replace_graph(cermet::remove_dead_code(c.graph())); }

}  // namespace cermet
