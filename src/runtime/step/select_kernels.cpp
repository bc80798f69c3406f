#include <set>

#include "runtime/step/compilation.hpp"
#include "select/select.hpp"

namespace cermet {

std::string step::select_kernels(Compilation& c) {
  std::set<std::string_view> names;
  for (std::size_t step = 0; step < c.groups.size(); ++step) {
    const Node& node = c.node_of(step);
    try {
      c.choices.push_back(select_kernel(c.region_of(step)));
      if (c.options.fusion.choose) c.options.fusion.choose(c.region_of(step), c.choices.back());
      names.insert(c.choices.back().kernel->name);
    } catch (const Error& error) {
      if (node.scope.empty()) throw;
      throw Error(error.status(), fmt::format("{}: {}", node.scope, error.what()));
    }
  }
  return fmt::format("{} launches of {} kernels", c.choices.size(), names.size());
}

}  // namespace cermet
