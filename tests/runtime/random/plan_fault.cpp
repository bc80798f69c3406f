#include <algorithm>
#include <map>

#include "tests/runtime/random/checks.hpp"

namespace cermet::test {
namespace {

/// Runs a plan in thought: who wrote which bytes of the arena last.
class Replay {
 public:
  explicit Replay(const CompileRecord& record) : record_(record), graph_(record.graph), made_(graph_.values().size()) {
    for (std::size_t v = 0; v < made_.size(); ++v) made_[v] = graph_.values()[v].kind != ValueKind::intermediate;
  }

  std::optional<std::string> run() {
    std::vector<int> times(graph_.nodes().size());
    for (const FusionGroup& group : record_.groups)
      for (const std::int32_t n : group.nodes) ++times[static_cast<std::size_t>(n)];
    for (const std::int32_t n : record_.views) ++times[static_cast<std::size_t>(n)];
    for (std::size_t n = 0; n < times.size(); ++n)
      if (times[n] != 1) return fmt::format("node {} is in {} groups", place(n), times[n]);
    for (const FusionGroup& group : record_.groups) {
      make_views();
      for (const ValueId id : group.operands)
        if (id && !made_[id.at()]) return fmt::format("'{}' is read before it is written", graph_.value(id).name);
      for (const ValueId id : group.operands)
        if (id && is_in_arena(id) && !is_whole(id))
          return fmt::format("memory of '{}' is written before it is read", graph_.value(id).name);
      for (const ValueId id : group.results) write(id);
    }
    make_views();
    for (const GraphOutput& output : graph_.outputs()) {
      if (!made_[output.value.at()]) return fmt::format("result '{}' is not written", output.name);
      if (is_in_arena(output.value) && !is_whole(output.value))
        return fmt::format("memory of result '{}' is written again", output.name);
    }
    return {};
  }

 private:
  std::string place(std::size_t n) const { return graph_.value(graph_.nodes()[n].outputs[0]).name; }
  std::size_t root(ValueId id) const { return static_cast<std::size_t>(record_.memory.root[id.at()]); }
  bool is_in_arena(ValueId id) const { return record_.memory.offset[root(id)] >= 0 && size(id) > 0; }
  std::int64_t size(ValueId id) const { return graph_.values()[root(id)].type.bytes().value(record_.maximum); }

  void make_views() {
    for (const std::int32_t n : record_.views) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(n)];
      if (made_[node.inputs[0].at()])
        for (const ValueId id : node.outputs) made_[id.at()] = true;
    }
  }
  void write(ValueId id) {
    made_[id.at()] = true;
    if (!is_in_arena(id)) return;
    const std::int64_t begin = record_.memory.offset[root(id)], end = begin + size(id);
    std::erase_if(owners_, [&](const auto& owner) { return owner.second.first < end && begin < owner.second.second; });
    owners_[root(id)] = {begin, end};
  }
  bool is_whole(ValueId id) const { return owners_.contains(root(id)); }

  const CompileRecord& record_;
  const Graph& graph_;
  std::vector<bool> made_;  ///< by value
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>>
      owners_;  ///< by root: its bytes, while nothing else was written there
};

}  // namespace

std::optional<std::string> find_plan_fault(const CompileRecord& record) { return Replay(record).run(); }

}  // namespace cermet::test
