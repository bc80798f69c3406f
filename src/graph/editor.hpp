// Edits a graph: nodes and values keep their ids while others come and go, and every single edit takes time in
// proportion to what it touches.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// A node of a graph that is being edited: its position in the graph that the editor began with, or a number of its own
/// for one that was inserted.
using NodeId = std::int32_t;
inline constexpr NodeId no_node = -1;

class GraphEditor {
 public:
  explicit GraphEditor(const Graph& graph);

  const Value& value(ValueId id) const { return values_.at(id.at()); }
  const Node& node(NodeId n) const;
  bool has(NodeId n) const {
    return n >= 0 && static_cast<std::size_t>(n) < nodes_.size() && nodes_[static_cast<std::size_t>(n)].present;
  }
  NodeId producer(ValueId id) const {
    return is_seen(value(id).producer) ? value(id).producer : no_node;
  }  ///< no_node for inputs and constants
  std::span<const Use> uses(ValueId id) const {
    return focus_ ? seen_uses(id) : std::span<const Use>(readers_.at(id.at()).uses);
  }  ///< in no order
  bool is_output(ValueId id) const {
    return !readers_.at(id.at()).outputs.empty() || (focus_ && seen_uses(id).size() < readers_.at(id.at()).uses.size());
  }
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  NodeId next(NodeId n) const { return links_.at(static_cast<std::size_t>(n)).next; }
  std::size_t size() const { return size_; }
  NodeId next_id() const { return static_cast<NodeId>(nodes_.size()); }  ///< of the node that is inserted next

  /// While it lives, only the nodes that are in the same super-kernel as node `n`, or like it in none, are seen: what
  /// others make has no producer, what others read is an output, and new nodes are with them. So rewriting joins
  /// nothing across the border of a super-kernel.
  class Focus {
   public:
    Focus(GraphEditor& editor, NodeId n);
    ~Focus();
    Focus(const Focus&) = delete;
    Focus& operator=(const Focus&) = delete;

   private:
    GraphEditor& editor_;
  };

  /// A constant in a name of its own, or in `name.2` and so on where it is taken.
  ValueId add_constant(std::string_view name, ConstantExpression expression);
  ValueId add_constant(std::string_view name, TensorData data);

  /// A new node in the given scope and in the super-kernel of `place`, before or after it; at the end of the
  /// graph, in none, after no_node. Names and errors are those of Graph::apply_all.
  std::vector<ValueId> insert_before(NodeId place, OpKind op, std::vector<ValueId> inputs,
                                     const Attributes& attributes = {}, std::string_view scope = {},
                                     const std::vector<std::string>& names = {});
  std::vector<ValueId> insert_after(NodeId place, OpKind op, std::vector<ValueId> inputs,
                                    const Attributes& attributes = {}, std::string_view scope = {},
                                    const std::vector<std::string>& names = {});
  /// Lets one operand read another value of the same type. Throws Error naming both where the types differ.
  void set_operand(Use use, ValueId to);
  /// Lets everything that reads `from`, outputs and updates of the graph included, read `to`, which has the same type;
  /// node `except` keeps what it reads.
  void replace_uses(ValueId from, ValueId to, NodeId except = no_node);
  /// Takes out a node. Throws Error where one of its results is still read.
  void erase(NodeId n);
  /// Lets `results`, pairs of an old and a new value, take each other's place, and takes out the nodes, which nothing
  /// else may read.
  void replace(std::span<const NodeId> nodes, std::span<const std::pair<ValueId, ValueId>> results);
  /// A free name for an intermediate value, such as that of a result that it replaced.
  void rename(ValueId id, std::string_view name);

  /// The edited graph. Nodes stand in the order in which they were left where they can run in it; those that cannot
  /// wait for what they read, and for the readers of what they overwrite. Constants that nothing reads any more are
  /// left out; inputs stay. Throws Error naming a node where there is no such order. Takes n log n for n nodes.
  Graph finish() const;

 private:
  struct Slot {
    Node node;
    std::vector<std::int32_t> place;  ///< by operand: where it stands in the uses of what it reads
    bool present = true;
  };
  struct Link {
    NodeId before = no_node, next = no_node;
  };
  struct Readers {
    std::vector<Use> uses;
    std::vector<std::size_t> outputs;  ///< positions in kept_
  };
  std::vector<ValueId> insert(NodeId before, NodeId next, NodeId place, OpKind op, std::vector<ValueId> inputs,
                              const Attributes& attributes, std::string_view scope,
                              const std::vector<std::string>& names);
  ValueId add_value(std::string name, TensorType type, ValueKind kind, ConstantSource source);
  ValueId add_constant_value(std::string_view name, TensorType type, ConstantSource source);
  bool is_seen(NodeId n) const {
    return !focus_ || n == no_node || nodes_[static_cast<std::size_t>(n)].node.super_kernel == *focus_;
  }
  std::span<const Use> seen_uses(ValueId id) const;
  void add_use(NodeId n, std::size_t operand);
  void remove_use(NodeId n, std::size_t operand);
  void require_same_type(ValueId from, ValueId to) const;
  std::vector<std::optional<TensorType>> types_of(const std::vector<ValueId>& ids) const;
  std::vector<NodeId> in_runnable_order() const;
  Slot& slot(NodeId n) { return nodes_[static_cast<std::size_t>(n)]; }
  Link& link(NodeId n) { return links_[static_cast<std::size_t>(n)]; }

  std::string name_;
  SymbolRanges ranges_;
  std::vector<SuperKernel> super_kernels_;
  bool has_marks_ = false;
  std::optional<std::int32_t> focus_;                   ///< the only mark whose nodes are seen
  mutable std::deque<std::vector<Use>> filtered_uses_;  ///< what seen_uses() gave since the focus began
  std::vector<Value> values_;                           ///< values of erased nodes keep their place
  std::vector<Readers> readers_;
  std::vector<Slot> nodes_;
  std::vector<Link> links_;
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  std::vector<ValueId> kept_;  ///< Graph::kept_values() of the edited graph
  Names names_;
  NodeId first_ = no_node, last_ = no_node;
  std::size_t size_ = 0, original_values_ = 0;
};

}  // namespace cermet
