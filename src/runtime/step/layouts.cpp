#include "graph/channels_last.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {

std::string step::choose_layouts(Compilation& c) {
  const std::size_t before = c.graph().nodes().size();
  c.state->graph = with_channels_last(c.graph());
  c.moved_channels = c.graph().nodes().size() != before;
  return fmt::format("{} nodes, {} before", c.graph().nodes().size(), before);
}

}  // namespace cermet
