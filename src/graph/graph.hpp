// The intermediate representation: operators applied to values, in an order in which they can run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graph/names.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

enum class ValueKind : std::uint8_t {
  input,         ///< bound by the caller before a run; may be state that the graph updates in place
  constant,      ///< known before the first run, never written: a weight, data of the graph, or an expression on other
                 ///< constants
  intermediate,  ///< made by a node
};

/// A result of an operator on constants, computed while weights load: three matrices stacked, a transposed one.
struct ConstantExpression {
  OpKind op{};
  std::vector<ValueId> inputs;  ///< constants that come earlier among the values
  Attributes attributes;
  std::int32_t output = 0;  ///< which of the operator's results
  friend bool operator==(const ConstantExpression&, const ConstantExpression&) = default;
};

/// What a constant's elements are: nothing said, then they are loaded under its name; held here; or computed.
using ConstantSource = std::variant<std::monostate, TensorData, ConstantExpression>;

struct Value {
  std::string name;  ///< unique in the graph
  TensorType type;   ///< dimensions may be symbolic
  ValueKind kind = ValueKind::intermediate;
  std::int32_t producer = -1;  ///< node that makes it, for intermediates
  ConstantSource source = {};  ///< of a constant
  Ints order = {};             ///< of an input: see is_order()

  const TensorData* data() const { return std::get_if<TensorData>(&source); }
  const ConstantExpression* expression() const { return std::get_if<ConstantExpression>(&source); }
};

/// One operator application. Inputs precede outputs in the order of the graph.
struct Node {
  OpKind op;
  std::vector<ValueId> inputs;  ///< in the schema's order; ValueId{} where an optional operand is not given
  std::vector<ValueId> outputs;
  Attributes attributes;                 ///< as given; defaults are the schema's
  std::string scope;                     ///< its place in the model: "layers.3.attention"
  std::int32_t super_kernel = unmarked;  ///< of Graph::super_kernels()

  static constexpr std::int32_t unmarked = -1;
  static constexpr std::int32_t excluded = -2;  ///< by the builder: options that mark whole graphs leave it out
};

/// Nodes that are marked to become one launch.
struct SuperKernel {
  std::string name;     ///< unique in the graph
  std::string options;  ///< as SuperKernelOptions::parse takes them
  friend bool operator==(const SuperKernel&, const SuperKernel&) = default;
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
  Ints order = {};  ///< see is_order()
};

/// Whether a list says in which order a caller's dimensions are in memory, outermost first: dimension i of the graph's
/// value is dimension order[i] of the caller's tensor, as in [0, 2, 3, 1] for images with their channels last. An empty
/// one: as they are.
bool is_order(const Ints& order, int rank);

/// Memory of an input that holds another value once a run has ended.
struct GraphUpdate {
  ValueId input, value;
  friend bool operator==(const GraphUpdate&, const GraphUpdate&) = default;
};

/// Operators in execution order over values in static single assignment. State that a node updates in place (a KV
/// cache) is an input whose memory an output shares, as the operator's `aliases` say; nodes that read after the write
/// read that output.
class Graph {
 public:
  std::string name;

  /// Declares a value bound by the caller, of the type that it has in memory. Throws Error when the name is taken, or
  /// the order is none of its dimensions.
  ValueId add_input(std::string_view value_name, TensorType type, Ints order = {});
  /// Declares a weight, loaded under its name. Throws Error when the name is taken.
  ValueId add_constant(std::string_view value_name, TensorType type);
  /// Declares a constant whose elements the graph holds. Throws Error when the name is taken.
  ValueId add_constant(std::string_view value_name, TensorData data);
  /// Declares a constant that is computed of others while weights load. Throws Error naming the constant, or its
  /// expression's operand.
  ValueId add_constant(std::string_view value_name, ConstantExpression expression);
  /// The range of a symbol of the graph's dimensions; throws Error where it is empty or negative.
  void set_range(const Symbol& symbol, DimRange range);
  /// Applies an operator: validates, infers the outputs and appends a node in the current scope. Output values are
  /// named after the scope and operator ("layers.0.attention.linear.2"), unless `names` gives their names. Throws Error
  /// naming scope and operand. Given names are used unchanged, without the scope.
  std::vector<ValueId> apply_all(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes = {},
                                 const std::vector<std::string>& names = {});
  /// The same for an operator of one output.
  ValueId apply(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes = {},
                std::string_view value_name = {});
  /// Marks a value as a result. Throws Error when the name is taken.
  void add_output(std::string_view output_name, ValueId id, Ints order = {});
  /// Lets the memory of an input hold a value once a run has ended; all nodes that read the input read what it held
  /// before. Throws Error where it is no input, has another type, or has an update already.
  void add_update(ValueId input, ValueId stored);
  /// A graph from its parts, unchecked: what the text form and the passes build. verify() says whether it is valid.
  static Graph from_parts(std::string name, std::vector<Value> values, std::vector<Node> nodes,
                          std::vector<GraphOutput> outputs, SymbolRanges ranges = {},
                          std::vector<SuperKernel> super_kernels = {}, std::vector<GraphUpdate> updates = {});

  const Value& value(ValueId id) const;
  const TensorType& type(ValueId id) const { return value(id).type; }
  /// The operands that read a value, in the order of the nodes; outputs of the graph are not among them.
  std::span<const Use> uses(ValueId id) const;
  /// Value by name; ValueId{} when there is none.
  ValueId find(std::string_view value_name) const;

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<GraphUpdate>& updates() const { return updates_; }
  /// Values that must stand when a run ends: those of outputs, then those of updates.
  std::vector<ValueId> kept_values() const;
  const SymbolRanges& ranges() const { return ranges_; }  ///< sorted by the symbols' names
  const std::vector<SuperKernel>& super_kernels() const { return super_kernels_; }
  /// Types that a constant's expression gives, one for each result of its operator. Throws Error naming the operand.
  std::vector<TensorType> types_of(const ConstantExpression& expression) const;
  /// The resolved problem of a node: types, attributes with defaults, which operands are constants, symbols at
  /// `maximum`.
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

  /// Marks the nodes that are added while it lives; an inner one takes the place of an outer one.
  class SuperKernelScope {
   public:
    SuperKernelScope(Graph& graph, std::int32_t super_kernel);
    ~SuperKernelScope();
    SuperKernelScope(const SuperKernelScope&) = delete;
    SuperKernelScope& operator=(const SuperKernelScope&) = delete;

   private:
    Graph& graph_;
    std::int32_t previous_;
  };
  /// Nodes added while the result lives belong to the super-kernel of this name, which may be entered again, with the
  /// same options or none; without a name they belong to none, whatever is around them. Throws Error naming a wrong
  /// option, or other options than those before.
  [[nodiscard]] SuperKernelScope super_kernel(std::string_view super_kernel = {}, std::string_view options = {});
  /// The super-kernel of this name, new or known; errors as above.
  std::int32_t add_super_kernel(std::string_view super_kernel, std::string_view options = {});
  /// Lets a node belong to a super-kernel, or to none (Node::unmarked, Node::excluded).
  void mark(std::size_t node, std::int32_t super_kernel);

 private:
  ValueId add_value(std::string value_name, TensorType type, ValueKind kind, ConstantSource source = {});
  void note_uses(const Node& node, std::int32_t position);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Use>> uses_;  ///< by value
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  SymbolRanges ranges_;
  std::vector<SuperKernel> super_kernels_;
  Names names_;
  std::unordered_set<std::string> output_names_;
  std::string scope_;
  std::int32_t super_kernel_ = Node::unmarked;
};

/// Names of a node's results: `given`, or the scope, the operator and, where there are several, the result's name in
/// the schema.
std::vector<std::string> result_names(Names& names, std::string_view scope, const OpDefinition& op, std::size_t count,
                                      const std::vector<std::string>& given);

}  // namespace cermet
