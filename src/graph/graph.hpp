// The intermediate representation: operators applied to values, in an order in which they can run.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "op/operator.hpp"

namespace cermet {

/// A value of a graph, by position. -1 stands for an optional operand that is not given.
struct ValueId {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  friend bool operator==(ValueId, ValueId) = default;
};

enum class ValueKind : std::uint8_t {
  input,         ///< bound by the caller before a run; may be state that the graph updates in place
  constant,      ///< a weight: known before the first run, never written
  intermediate,  ///< made by a node
};

struct Value {
  std::string name;  ///< unique in the graph; constants: the name under which the weight is loaded
  TensorType type;   ///< dimensions may be symbolic
  ValueKind kind = ValueKind::intermediate;
  std::int32_t producer = -1;  ///< node that makes it, for intermediates
};

/// One operator application. Inputs precede outputs in the order of the graph.
struct Node {
  OpKind op;
  std::vector<ValueId> inputs;  ///< in the schema's order; ValueId{} where an optional operand is not given
  std::vector<ValueId> outputs;
  Attributes attributes;  ///< as given; defaults are the schema's
  std::string scope;      ///< its place in the model: "layers.3.attention"
};

/// A place where a value is read: operand `operand` of node `node`.
struct Use {
  std::int32_t node = -1, operand = -1;
  friend bool operator==(Use, Use) = default;
};

/// A result of the graph under a name of its own.
struct GraphOutput {
  std::string name;
  ValueId value;
};

/// Operators in execution order over values in static single assignment. State that a node updates in place (a KV cache) is an input whose
/// memory an output shares, as the operator's `aliases` say; nodes that read after the write read that output.
class Graph {
 public:
  std::string name;

  /// Declares a value bound by the caller. Throws Error when the name is taken.
  ValueId add_input(std::string_view value_name, TensorType type);
  /// Declares a weight. Throws Error when the name is taken.
  ValueId add_constant(std::string_view value_name, TensorType type);
  /// Applies an operator: validates, infers the outputs and appends a node in the current scope. Output values are named after the scope and
  /// operator ("layers.0.attention.linear.2"), unless `names` gives their names. Throws Error naming scope and operand.
  /// Given names are used unchanged, without the scope.
  std::vector<ValueId> apply_all(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes = {}, const std::vector<std::string>& names = {});
  /// The same for an operator of one output.
  ValueId apply(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes = {}, std::string_view value_name = {});
  /// Marks a value as a result. Throws Error when the name is taken.
  void add_output(std::string_view output_name, ValueId value);
  /// A graph from its parts, unchecked: what the text form and the passes build. verify() says whether it is valid.
  static Graph from_parts(std::string name, std::vector<Value> values, std::vector<Node> nodes, std::vector<GraphOutput> outputs);

  const Value& value(ValueId id) const;
  const TensorType& type(ValueId id) const { return value(id).type; }
  /// The operands that read a value, in the order of the nodes; outputs of the graph are not among them.
  std::span<const Use> uses(ValueId id) const;
  /// Value by name; ValueId{} when there is none.
  ValueId find(std::string_view value_name) const;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  /// The resolved problem of a node: types, attributes with defaults, which operands are constants, symbols at `maximum`.
  Problem problem_of(const Node& node, const SymbolValues& maximum) const;

  /// Names the part of the model that is being built: scopes nest, "layers.0" then "attention".
  class Scope {
   public:
    Scope(Graph& graph, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t previous_length_;
  };

 private:
  ValueId add_value(std::string value_name, TensorType type, ValueKind kind);
  void note_uses(const Node& node, std::int32_t position);
  std::vector<std::string> fresh_names(const std::string& base, std::span<const std::string> suffixes);
  std::vector<std::string> output_names(const OpDefinition& op, std::size_t count, const std::vector<std::string>& names);

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Use>> uses_;  ///< by value
  std::vector<GraphOutput> outputs_;
  std::unordered_map<std::string, ValueId, NameHash, std::equal_to<>> by_name_;  ///< the first value of each name
  std::unordered_set<std::string> output_names_;
  std::unordered_map<std::string, int> next_number_;  ///< by name without its number: where the search for a free one goes on
  std::string scope_;
};

}  // namespace cermet
