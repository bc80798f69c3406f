#include "fuse/report.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "fuse/group_maker.hpp"
#include "fuse/mapping.hpp"
#include "fuse/neighbours.hpp"
#include "fuse/nodes.hpp"
#include "fuse/writers.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

struct Row {
  std::string_view name, summary;
};
constexpr std::array rows{
    Row{"view", "shares its operand's memory, so that nothing is launched"},
    Row{"mode", "the mode joins nothing of the kind"},
    Row{"border", "in different super-kernels"},
    Row{"limit", "a group has as many operators as it may"},
    Row{"overwritten", "memory is overwritten in between"},
    Row{"cycle", "would need a cycle"},
    Row{"table", "an X of the table of mapping types"},
    Row{"result", "a result of the graph"},
    Row{"readers", "read by other operators, too"},
    Row{"kernels", "no kernel takes both"},
    Row{"order", "a kernel takes both, but one of them had joined others before"},
};
static_assert(rows.size() == static_cast<std::size_t>(WhyApart::order) + 1);

class Explainer {
 public:
  Explainer(const Graph& graph, const SymbolValues& maximum, std::span<const FusionGroup> groups,
            const FusionReportQuestions& questions)
      : graph_(graph),
        groups_(groups),
        questions_(questions),
        maker_(graph, maximum, questions.target),
        writers_(graph),
        group_of_(graph.nodes().size(), -1) {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::int32_t n : groups[g].nodes) group_of_[at(n)] = static_cast<std::int32_t>(g);
    // Views run in no group, but connect groups: their numbers follow those of the groups.
    for (std::size_t v = 0; v < questions.views.size(); ++v)
      group_of_[at(questions.views[v])] = static_cast<std::int32_t>(groups.size() + v);
    note_readers();
  }

  FusionReport run() {
    FusionReport report;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n)
      for (const ValueId id : graph_.nodes()[n].inputs) add(report, id, group_of_[n]);
    std::ranges::stable_sort(report.edges, {},
                             [](const UnfusedEdge& e) { return std::pair(e.consumer, e.value.index); });
    return report;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  bool is_view(std::int32_t group) const { return at(group) >= groups_.size(); }

  void add(FusionReport& report, ValueId id, std::int32_t consumer) {
    if (!id || graph_.value(id).producer < 0) return;
    const std::int32_t producer = group_of_[at(graph_.value(id).producer)];
    if (producer == consumer || !seen_.emplace(std::tuple(producer, consumer, id.index), true).second) return;
    auto [why, text] = reason(producer, consumer, id);
    if (text.empty()) text = summary_of(why);
    report.edges.push_back({producer, consumer, id, why, std::move(text)});
  }

  using Reason = std::pair<WhyApart, std::string>;

  Reason reason(std::int32_t from, std::int32_t to, ValueId id) {
    if (is_view(from) && !is_view(to)) return behind_views(groups_[at(to)]);
    if (is_view(from) || is_view(to)) return {WhyApart::view, ""};
    const FusionGroup &first = groups_[at(from)], &second = groups_[at(to)];
    if (questions_.mode == FusionMode::none) return {WhyApart::mode, why_apart(FusionMode::none, first.region)};
    if (!share_super_kernel(graph_, first.anchor(), second.anchor())) return {WhyApart::border, ""};
    std::vector<std::int32_t> nodes;
    std::ranges::merge(first.nodes, second.nodes, std::back_inserter(nodes));
    if (nodes.size() > most_group_nodes)
      return {WhyApart::limit, fmt::format("{} operators together, at most {}", nodes.size(), most_group_nodes)};
    if (is_overwritten(nodes)) return {WhyApart::overwritten, ""};
    if (const std::int32_t between = group_between(from, to); between >= 0)
      return {WhyApart::cycle,
              fmt::format("{} runs in between: it reads the one and is read by the other", operators_of(between))};
    const bool behind =
        is_one_to_one(second.region.problem().op->kind) && !is_one_to_one(first.region.problem().op->kind);
    const Region together = maker_.group(nodes, behind ? first.anchor() : second.anchor()).region;
    if (std::string why = why_apart(questions_.mode, together); !why.empty())
      return {questions_.mode == FusionMode::published ? WhyApart::table : WhyApart::mode, std::move(why)};
    const std::string declines = questions_.declines(together);
    if (declines.empty()) return {WhyApart::order, ""};
    if (is_output(graph_, id)) return {WhyApart::result, fmt::format("a result of the graph; {}", declines)};
    const auto others = std::ranges::count_if(
        graph_.uses(id), [&](const Use& use) { return !std::ranges::binary_search(nodes, use.node); });
    if (others > 0)
      return {WhyApart::readers,
              fmt::format("read by {} other operator{}; {}", others, others == 1 ? "" : "s", declines)};
    return {WhyApart::kernels, declines};
  }

  /// Of an operator that may end a product whose columns it reads in parts, and of which only views keep it apart: why
  /// no kernel takes all of them.
  Reason behind_views(const FusionGroup& reader) {
    Reason apart{WhyApart::view, ""};
    if (reader.region.problem().op->kind != OpKind::rope_and_cache) return apart;
    std::vector<std::int32_t> nodes = reader.nodes;
    std::int32_t maker = -1;
    for (const ValueId operand : reader.operands) {
      std::int32_t n = operand ? graph_.value(operand).producer : -1;
      bool viewed = false;
      for (; n >= 0 && is_view(group_of_[at(n)]); n = graph_.value(graph_.nodes()[at(n)].inputs[0]).producer) {
        nodes.push_back(n);
        viewed = true;
      }
      if (!viewed) continue;
      if (n < 0 || (maker >= 0 && maker != group_of_[at(n)])) return apart;
      maker = group_of_[at(n)];
    }
    if (maker < 0) return apart;
    const FusionGroup& product = groups_[at(maker)];
    nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::string declines = questions_.declines(maker_.group(nodes, product.anchor()).region);
    return declines.empty() ? apart : Reason{WhyApart::kernels, std::move(declines)};
  }

  /// Whether some node must not run where the last one does.
  bool is_overwritten(const std::vector<std::int32_t>& nodes) const {
    return std::ranges::any_of(nodes, [&](std::int32_t n) {
      return std::ranges::any_of(graph_.nodes()[at(n)].inputs,
                                 [&](ValueId id) { return id && writers_.overwrite_between(id, n, nodes.back()); });
    });
  }

  std::string operators_of(std::int32_t group) const {
    if (!is_view(group)) return groups_[at(group)].region.operators();
    return std::string(definition(graph_.nodes()[at(questions_.views[at(group) - groups_.size()])].op).name);
  }

  void note_readers() {
    readers_.resize(groups_.size() + questions_.views.size());
    last_.resize(readers_.size());
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) last_[at(group_of_[n])] = static_cast<std::int32_t>(n);
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n)
      for (const ValueId id : graph_.nodes()[n].inputs)
        if (id && graph_.value(id).producer >= 0) {
          std::vector<std::int32_t>& list = readers_[at(group_of_[at(graph_.value(id).producer)])];
          if (group_of_[n] != group_of_[at(graph_.value(id).producer)] &&
              std::ranges::find(list, group_of_[n]) == list.end())
            list.push_back(group_of_[n]);
        }
  }

  /// The first step of a path from one group to the other that goes through a third; -1 where there is none.
  std::int32_t group_between(std::int32_t from, std::int32_t to) const {
    for (const std::int32_t first : readers_[at(from)]) {
      if (first == to) continue;
      std::vector<std::int32_t> open{first};
      std::map<std::int32_t, bool> visited;
      while (!open.empty()) {
        const std::int32_t group = open.back();
        open.pop_back();
        if (group == to) return first;
        if (last_[at(group)] > last_[at(to)] || !visited.emplace(group, true).second) continue;
        std::ranges::copy(readers_[at(group)], std::back_inserter(open));
      }
    }
    return -1;
  }

  const Graph& graph_;
  std::span<const FusionGroup> groups_;
  const FusionReportQuestions& questions_;
  GroupMaker maker_;
  Writers writers_;
  std::vector<std::int32_t> group_of_;              ///< by node
  std::vector<std::vector<std::int32_t>> readers_;  ///< by group: others that read what it makes
  std::vector<std::int32_t> last_;                  ///< by group: its last node
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, bool> seen_;
};

}  // namespace

std::string_view name_of(WhyApart why) { return rows[static_cast<std::size_t>(why)].name; }
std::string_view summary_of(WhyApart why) { return rows[static_cast<std::size_t>(why)].summary; }

FusionReport explain_fusion(const Graph& graph, const SymbolValues& maximum, std::span<const FusionGroup> groups,
                            const FusionReportQuestions& questions) {
  return Explainer(graph, maximum, groups, questions).run();
}

}  // namespace cermet
