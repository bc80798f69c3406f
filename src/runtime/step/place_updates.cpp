#include <algorithm>

#include "fuse/group_maker.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

bool is_elementwise(OpKind kind) {
  const OpDefinition& op = definition(kind);
  return op.in_place.empty() && op.aliases.empty() &&
         std::ranges::all_of(op.inputs, [](const OperandSpec& s) { return s.mapping == Mapping::one_to_one; });
}

/// Decides which steps write the memory of updated inputs, and appends copies for the other updates.
class UpdatePlacer {
 public:
  explicit UpdatePlacer(Compilation& c) : c_(c), outputs_(c.graph().outputs()), updates_(c.graph().updates()) {
    root_ = memory_roots(c.graph(), [&](std::int32_t n) { return std::ranges::binary_search(c.views, n); });
  }

  std::string run() {
    c_.state->memory.layouts.resize(c_.graph().values().size());  // all dense where views were not folded
    for (const GraphUpdate& update : updates_) place(update);
    const std::size_t nodes = c_.graph().nodes().size();
    const auto in_place = std::ranges::count_if(updates_, [&](const GraphUpdate& update) { return is_done(update); });
    keep_old_values();
    for (GraphUpdate& update : updates_)
      if (!is_done(update)) update.value = append(OpKind::assign, {update.input, update.value}, {});
    const Graph& g = c_.graph();
    c_.state->graph =
        Graph::from_parts(g.name, g.values(), g.nodes(), outputs_, g.ranges(), g.super_kernels(), updates_);
    c_.state->memory.layouts.resize(g.values().size());
    const GroupMaker maker(c_.graph(), c_.options.maximum, c_.device.target());
    for (std::size_t n = nodes; n < c_.graph().nodes().size(); ++n)
      c_.groups.push_back(maker.single(static_cast<std::int32_t>(n)));
    return fmt::format("{} of {} updates in place, {} copies", in_place, updates_.size(),
                       c_.graph().nodes().size() - nodes);
  }

 private:
  std::int32_t root_of(ValueId id) const {
    return id && id.at() < root_.size() ? root_[id.at()] : id.index;  // appended values have memory of their own
  }
  bool is_direct(const GraphUpdate& update) const {
    return std::ranges::find(c_.direct_updates, update) != c_.direct_updates.end();
  }
  /// Whether the memory holds the value without a copy.
  bool is_done(const GraphUpdate& update) const {
    return root_of(update.value) == update.input.index || is_direct(update);
  }
  const GraphUpdate* update_of(std::int32_t input) const {
    const auto found = std::ranges::find(updates_, ValueId{input}, &GraphUpdate::input);
    return found == updates_.end() ? nullptr : &*found;
  }

  /// Lets the step that makes a value write it where it is wanted, if nothing needs what is there later on.
  void place(const GraphUpdate& update) {
    if (is_done(update)) return;
    const auto makes = [&](const FusionGroup& group) {
      return std::ranges::find(group.results, update.value) != group.results.end();
    };
    const auto maker = std::ranges::find_if(c_.groups, makes);
    if (maker == c_.groups.end() || root_of(update.value) != update.value.index || is_kept_elsewhere(update) ||
        !c_.state->memory.layouts.at(update.value.at()).is_dense() || !may_write(*maker, update))
      return;
    const bool is_needed =
        std::any_of(maker + 1, c_.groups.end(), [&](const FusionGroup& later) { return touches(later, update.input); });
    if (is_needed) {
      if (!may_wait(*maker)) return;
      std::rotate(maker, maker + 1, c_.groups.end());
    }
    c_.direct_updates.push_back(update);
  }

  /// Whether what the input held is a result or another update's value, or the value is in another input already, or
  /// seen with other dimensions as a result.
  bool is_kept_elsewhere(const GraphUpdate& update) const {
    const auto is_view = [&](ValueId id) { return id != update.value && root_of(id) == update.value.index; };
    if (std::ranges::any_of(outputs_, is_view, &GraphOutput::value)) return true;
    const auto is_old = [&](ValueId id) { return root_of(id) == update.input.index; };
    return std::ranges::any_of(outputs_, is_old, &GraphOutput::value) ||
           std::ranges::any_of(updates_, is_old, &GraphUpdate::value) ||
           std::ranges::find(c_.direct_updates, update.value, &GraphUpdate::value) != c_.direct_updates.end();
  }

  bool touches(const FusionGroup& group, ValueId input) const {
    const auto has_root = [&](ValueId id) { return id && root_of(id) == input.index; };
    return std::ranges::any_of(group.operands, has_root) || std::ranges::any_of(group.results, has_root);
  }

  /// Whether a step reads each element of the input before it writes it, or not at all.
  bool may_write(const FusionGroup& group, const GraphUpdate& update) const {
    if (std::ranges::any_of(group.results, [&](ValueId id) { return root_of(id) == update.input.index; })) return false;
    const auto reads =
        std::ranges::count_if(group.operands, [&](ValueId id) { return id && root_of(id) == update.input.index; });
    if (reads == 0) return true;
    if (reads > 1 || std::ranges::find(group.operands, update.input) == group.operands.end()) return false;
    const auto node = [&](std::int32_t n) -> const Node& { return c_.graph().nodes()[static_cast<std::size_t>(n)]; };
    if (group.results.size() == 1 &&
        std::ranges::all_of(group.nodes, [&](std::int32_t n) { return is_elementwise(node(n).op); }))
      return true;
    if (group.nodes.size() > 1) return false;
    const Node& only = node(group.nodes[0]);
    const std::vector<int>& in_place = definition(only.op).in_place;
    const auto result = static_cast<std::size_t>(std::ranges::find(only.outputs, update.value) - only.outputs.begin());
    return result < in_place.size() && in_place[result] >= 0 &&
           only.inputs.at(static_cast<std::size_t>(in_place[result])) == update.input;
  }

  /// Whether a step may run last: no other reads what it makes, and what it reads is still there.
  bool may_wait(const FusionGroup& group) const {
    if (c_.node_of(static_cast<std::size_t>(&group - c_.groups.data())).super_kernel >= 0) return false;
    const auto is_made_here = [&](ValueId id) {
      return id && std::ranges::any_of(group.results, [&](ValueId made) { return root_of(id) == root_of(made); });
    };
    const auto is_overwritten = [&](ValueId id) {
      if (!id) return false;
      const bool by_update =
          std::ranges::find(c_.direct_updates, ValueId{root_of(id)}, &GraphUpdate::input) != c_.direct_updates.end();
      return by_update || std::ranges::any_of(c_.groups, [&](const FusionGroup& other) {
               return &other > &group &&
                      std::ranges::any_of(other.results, [&](ValueId made) { return root_of(made) == root_of(id); });
             });
    };
    return std::ranges::none_of(c_.groups,
                                [&](const FusionGroup& other) {
                                  return &other != &group && std::ranges::any_of(other.operands, is_made_here);
                                }) &&
           std::ranges::none_of(group.operands, is_overwritten) && !is_walked_in_ranks(group);
  }
  /// Ranks meet in an order that all of them share.
  bool is_walked_in_ranks(const FusionGroup& group) const {
    return std::ranges::any_of(group.region.nodes,
                               [](const RegionNode& node) { return node.problem.attributes.find("ranks") != nullptr; });
  }

  /// Results and updates that want what an updated input held before get a copy of it, views of it included.
  void keep_old_values() {
    const std::vector<std::int32_t> root = memory_roots(c_.graph());
    const auto keep = [&](ValueId& id, ValueId own) {
      const GraphUpdate* const other = update_of(root[id.at()]);
      if (id == own || !other || other->value == id) return;
      id = append(OpKind::expand, {id}, {{"shape", Ints(c_.graph().type(id).dims.size(), -1)}});
    };
    for (GraphOutput& output : outputs_) keep(output.value, {});
    for (GraphUpdate& update : updates_) keep(update.value, update.input);
  }
  ValueId append(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes) {
    return c_.state->graph.apply(op, std::move(inputs), attributes);
  }

  Compilation& c_;
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  std::vector<std::int32_t> root_;  ///< by value
};

}  // namespace

std::string step::place_updates(Compilation& c) {
  if (c.graph().updates().empty()) return "nothing is updated";
  return UpdatePlacer(c).run();
}

}  // namespace cermet
