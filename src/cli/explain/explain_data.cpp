#include "cli/explain/explain_data.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "cli/explain/explain_fold.hpp"
#include "fuse/mapping.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cli {
namespace {

std::string text_of(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, to_string(value));
  return text;
}

/// The blocks of a record and its views in the order of their last nodes.
class PlanData {
 public:
  PlanData(const CompileRecord& record, const std::vector<double>& measured) : record_(record), measured_(measured) {
    for (std::size_t g = 0; g < record.groups.size() + record.views.size(); ++g) order_.push_back(g);
    std::ranges::stable_sort(order_, {}, [&](std::size_t g) { return last_node(g); });
    place_.resize(order_.size());
    for (std::size_t b = 0; b < order_.size(); ++b) place_[order_[b]] = b;
    block_of_.resize(record.graph.nodes().size());
    for (std::size_t g = 0; g < order_.size(); ++g)
      for (const std::int32_t n : nodes_of(g)) block_of_[static_cast<std::size_t>(n)] = place_[g];
  }

  Json json() {
    Json data = totals();
    data["blocks"] = Json::array();
    for (const std::size_t g : order_) data["blocks"].push_back(block(g));
    add_edges(data);
    add_ends(data);
    data["repeats"] = Json::array();
    for (const Repeat& r : find_repeats(signatures_))
      data["repeats"].push_back(Json(std::vector<std::size_t>{r.first, r.length, r.times}));
    return data;
  }

 private:
  bool is_view(std::size_t g) const { return g >= record_.groups.size(); }
  std::vector<std::int32_t> nodes_of(std::size_t g) const {
    return is_view(g) ? std::vector{record_.views[g - record_.groups.size()]} : record_.groups[g].nodes;
  }
  std::int32_t last_node(std::size_t g) const { return nodes_of(g).back(); }
  const Value& value(ValueId id) const { return record_.graph.value(id); }
  std::int64_t bytes(ValueId id) const { return dense_bytes(value(id).type, record_.maximum); }

  Json totals() const {
    double modelled = 0, measured = 0;
    for (const BlockRecord& block : record_.blocks) modelled += block.modelled_seconds;
    for (const double seconds : measured_) measured += seconds;
    Json data{{"mode", name_of(record_.mode)},         {"nodes_before", record_.nodes_before},
              {"nodes", record_.graph.nodes().size()}, {"launches", record_.groups.size()},
              {"views", record_.views.size()},         {"intermediate_bytes", record_.memory.total},
              {"peak_bytes", record_.memory.bytes},    {"workspace_bytes", record_.workspace_bytes},
              {"modelled_seconds", modelled}};
    if (!measured_.empty()) data["measured_seconds"] = measured;
    data["rules"] = Json::array();
    for (const RuleCount& rule : record_.rules) data["rules"].push_back({{"name", rule.name}, {"times", rule.times}});
    data["super_kernels"] = Json::array();
    for (const SuperKernelRecord& each : record_.super_kernels) {
      Json collectives = Json::array();
      for (const std::size_t block : each.collectives) collectives.push_back(place_[block]);
      Json waits = Json::array();
      for (const SuperWait& wait : each.waits) {
        Json values = Json::array();
        for (const ValueId id : wait.values) values.push_back(value(id).name);
        waits.push_back({{"block", place_[wait.block]}, {"for", place_[wait.before]}, {"values", std::move(values)}});
      }
      data["super_kernels"].push_back({{"name", each.name},
                                       {"options", each.options},
                                       {"first_block", place_[each.first_block]},
                                       {"last_block", place_[each.last_block]},
                                       {"collectives", std::move(collectives)},
                                       {"waits", std::move(waits)}});
    }
    data["super_kernel_breaks"] = record_.super_breaks;
    return data;
  }

  Json block(std::size_t g) {
    Json data{{"ops", Json::array()}};
    std::string signature;
    for (const std::int32_t n : nodes_of(g)) {
      const Node& node = record_.graph.nodes()[static_cast<std::size_t>(n)];
      const ValueId made = node.outputs.front();
      data["ops"].push_back({{"op", definition(node.op).name},
                             {"name", value(made).name},
                             {"type", value(made).type.to_string()},
                             {"scope", node.scope},
                             {"attributes", text_of(node.attributes)}});
      signature +=
          fmt::format("{} {} {};", definition(node.op).name, value(made).type.to_string(), text_of(node.attributes));
    }
    if (is_view(g)) add_view(data, nodes_of(g).front());
    else add_launch(data, g);
    signatures_.push_back(
        numbers_.emplace(signature + (is_view(g) ? "view" : ""), static_cast<int>(numbers_.size())).first->second);
    return data;
  }

  void add_view(Json& data, std::int32_t n) const {
    data["view"] = true;
    data["mapping"] = name_of(
        mapping_of(record_.graph.problem_of(record_.graph.nodes()[static_cast<std::size_t>(n)], record_.maximum)));
  }

  void add_launch(Json& data, std::size_t g) const {
    const FusionGroup& group = record_.groups[g];
    const BlockRecord& block = record_.blocks[g];
    data["anchor"] = group.region.anchor;
    data["mapping"] = name_of(mapping_of(group.region));
    data["kernel"] = block.choice.kernel->name;
    data["config"] = block.choice.config.empty() ? "" : block.choice.config.to_string();
    data["bytes"] = block.work.bytes;
    data["operations"] = block.work.operations;
    data["seconds"] = block.modelled_seconds;
    data["least"] = block.least_seconds;
    if (!measured_.empty()) data["measured"] = measured_.at(g);
    for (const auto& [key, ids] : {std::pair("reads", &group.operands), std::pair("writes", &group.results)}) {
      data[key] = Json::array();
      for (const ValueId id : *ids)
        if (id)
          data[key].push_back({{"name", value(id).name},
                               {"type", value(id).type.to_string()},
                               {"constant", value(id).kind == ValueKind::constant}});
    }
  }

  /// Texts of reasons are many times the same.
  void add_edges(Json& data) const {
    std::map<std::pair<WhyApart, std::string>, std::size_t> known;
    std::map<WhyApart, std::size_t> counts;
    data["reasons"] = Json::array();
    data["edges"] = Json::array();
    for (const UnfusedEdge& edge : record_.report.edges) {
      const auto [reason, is_new] = known.emplace(std::pair(edge.why, edge.text), known.size());
      if (is_new) data["reasons"].push_back({{"why", name_of(edge.why)}, {"text", edge.text}});
      ++counts[edge.why];
      data["edges"].push_back({{"from", place_[static_cast<std::size_t>(edge.producer)]},
                               {"to", place_[static_cast<std::size_t>(edge.consumer)]},
                               {"value", value(edge.value).name},
                               {"type", value(edge.value).type.to_string()},
                               {"bytes", bytes(edge.value)},
                               {"reason", reason->second}});
    }
    data["reason_counts"] = Json::array();
    for (const auto& [why, count] : counts)
      data["reason_counts"].push_back({{"why", name_of(why)}, {"summary", summary_of(why)}, {"edges", count}});
  }

  void add_ends(Json& data) const {
    data["inputs"] = Json::array();
    for (std::size_t v = 0; v < record_.graph.values().size(); ++v) {
      const Value& input = record_.graph.values()[v];
      if (input.kind != ValueKind::input) continue;
      std::vector<std::size_t> readers;
      for (const Use& use : record_.graph.uses({static_cast<std::int32_t>(v)}))
        if (const std::size_t b = block_of_[static_cast<std::size_t>(use.node)];
            std::ranges::find(readers, b) == readers.end())
          readers.push_back(b);
      data["inputs"].push_back({{"name", input.name}, {"type", input.type.to_string()}, {"readers", readers}});
    }
    data["outputs"] = Json::array();
    for (const GraphOutput& output : record_.graph.outputs()) {
      const std::int32_t producer = value(output.value).producer;
      data["outputs"].push_back(
          {{"name", output.name},
           {"type", value(output.value).type.to_string()},
           {"block", producer < 0 ? Json(nullptr) : Json(block_of_[static_cast<std::size_t>(producer)])}});
    }
  }

  const CompileRecord& record_;
  const std::vector<double>& measured_;
  std::vector<std::size_t> order_, place_;  ///< groups, then views, by their place on the page; the other way round
  std::vector<std::size_t> block_of_;       ///< by node
  std::vector<int> signatures_;             ///< by block: alike for blocks that compute the same
  std::map<std::string, int> numbers_;
};

}  // namespace

Json plan_json(const CompileRecord& record, const std::vector<double>& measured) {
  return PlanData(record, measured).json();
}

}  // namespace cermet::cli
