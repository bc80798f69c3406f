#include "runtime/step/compilation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cermet {

std::string size_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const bool small = bytes < 1 << 20;
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / (small ? 1 << 10 : 1 << 20), small ? "KiB" : "MiB");
}

Compilation::Compilation(Graph graph, Device& on, WeightStore& store, ThreadPool& threads, const CompileOptions& given)
    : device(on), weights(store), pool(threads), options(given), state(std::make_unique<State>()) {
  state->graph = std::move(graph);
}

std::vector<cuda::Program> Compilation::programs() const {
  std::vector<cuda::Program> all;
  if (!device.target()) return all;
  for (std::size_t step = 0; step < choices.size(); ++step)
    std::ranges::move(programs_of(step), std::back_inserter(all));
  return all;
}

std::string Compilation::replace_graph(Graph smaller) {
  std::string note =
      fmt::format("{} of {} nodes left out", graph().nodes().size() - smaller.nodes().size(), graph().nodes().size());
  state->graph = std::move(smaller);
  return note;
}

}  // namespace cermet
