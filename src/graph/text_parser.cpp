#include <algorithm>
#include <unordered_map>

#include "graph/text.hpp"
#include "graph/text_line.hpp"
#include "graph/verify.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// A use of a value by name, resolved when every definition is known.
struct NameUse {
  std::string name;  ///< empty for an operand that is not given
  std::size_t line;
};

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text) {}

  Graph run() {
    TextLine header = next_line("'graph NAME {'");
    header.need("graph");
    std::string name = header.take("{") ? "" : header.name("the graph's name");
    if (!name.empty()) header.need("{");
    end_of(header);
    for (TextLine line = next_line("'}'"); !line.take("}"); line = next_line("'}'")) {
      statement(line);
      end_of(line);
    }
    resolve_expressions();
    std::vector<GraphUpdate> updates;
    for (const auto& [input, value] : updates_) updates.push_back({resolve(input), resolve(value)});
    return Graph::from_parts(std::move(name), std::move(values_), resolve_nodes(), resolve_outputs(),
                             std::move(ranges_), std::move(super_kernels_), std::move(updates));
  }

 private:
  /// The next line that means something.
  TextLine next_line(std::string_view wanted) {
    for (;;) {
      if (begin_ >= text_.size())
        fail(Status::invalid_argument, "graph text, line {}: expected {}, found the end", number_ + 1, wanted);
      const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
      TextLine line(text_.substr(begin_, end - begin_), ++number_);
      begin_ = end + 1;
      if (!line.at_end() && !line.take("//")) return line;
    }
  }
  static void end_of(TextLine& line) {
    if (!line.at_end()) line.expected("the end of the line");
  }

  void statement(TextLine& line) {
    if (line.take_word("symbol")) return range(line);
    if (line.take_word("super_kernel")) return super_kernel(line);
    if (line.take_word("input")) return declare(line, ValueKind::input);
    if (line.take_word("constant")) return declare(line, ValueKind::constant);
    if (line.take_word("output")) {
      std::string name = line.name("the output's name");
      line.need("=");
      outputs_.push_back(std::move(name));
      output_values_.push_back({line.value_name(), line.number()});
      output_orders_.push_back(order(line));
      return;
    }
    if (line.take_word("update")) {
      NameUse input{line.value_name(), line.number()};
      line.need("=");
      updates_.push_back({std::move(input), {line.value_name(), line.number()}});
      return;
    }
    node(line);
  }

  void declare(TextLine& line, ValueKind kind) {
    std::string name = line.value_name();
    line.need(":");
    const ValueId id = define(std::move(name), line.type(), kind, -1);
    if (kind == ValueKind::constant && line.take("=")) source(line, id);
    if (kind == ValueKind::input) values_[id.at()].order = order(line);
  }

  /// order [0, 2, 3, 1], where a line has it.
  static Ints order(TextLine& line) {
    if (!line.take_word("order")) return {};
    const AttributeValue value = line.attribute_value();
    const Ints* const list = std::get_if<Ints>(&value);
    if (!list)
      fail(Status::invalid_argument, "graph text, line {}: expected an order such as [0, 2, 1], found {}",
           line.number(), to_string(value));
    return *list;
  }

  /// super_kernel NAME, and its options where there are some.
  void super_kernel(TextLine& line) {
    SuperKernel& added = super_kernels_.emplace_back(SuperKernel{line.name("the super-kernel's name"), {}});
    if (!line.at_end()) added.options = line.name("the super-kernel's options");
  }

  /// in NAME, or outside.
  std::int32_t mark(TextLine& line) const {
    if (line.take_word("outside")) return Node::excluded;
    if (!line.take_word("in")) return Node::unmarked;
    const std::string name = line.name("a super-kernel's name");
    const auto known = std::ranges::find(super_kernels_, name, &SuperKernel::name);
    if (known == super_kernels_.end())
      fail(Status::invalid_argument, "graph text, line {}: expected a super-kernel of the lines before, found '{}'",
           line.number(), name);
    return static_cast<std::int32_t>(known - super_kernels_.begin());
  }

  /// symbol T : 1..4096, or 1.. without an end.
  void range(TextLine& line) {
    const Symbol symbol = line.symbol();
    line.need(":");
    DimRange range{line.integer(), DimRange{}.greatest};
    line.need("..");
    if (!line.at_end()) range.greatest = line.integer();
    ranges_.push_back({symbol, range});
  }

  /// A constant's data, or the operator that computes it.
  void source(TextLine& line, ValueId id) {
    if (line.starts_with("tensor ")) {
      values_[id.at()].source = std::get<TensorData>(line.attribute_value());
      return;
    }
    const OpDefinition& op = operation(line);
    ConstantExpression expression{op.kind, {}, {}, 0};
    expressions_.push_back({id, operand_list(line)});
    attributes(line, expression.attributes);
    if (line.take("[")) {
      expression.output = static_cast<std::int32_t>(line.integer());
      line.need("]");
    }
    values_[id.at()].source = std::move(expression);
  }

  static const OpDefinition& operation(TextLine& line) {
    const std::string name = line.name("an operator");
    const OpDefinition* op = find_operator(name);
    if (!op)
      fail(Status::invalid_argument, "graph text, line {}: expected an operator, found '{}'", line.number(), name);
    return *op;
  }

  ValueId define(std::string name, TensorType type, ValueKind kind, std::int32_t producer) {
    const ValueId id{static_cast<std::int32_t>(values_.size())};
    by_name_.emplace(name, id);
    values_.push_back({std::move(name), std::move(type), kind, producer});
    return id;
  }

  void node(TextLine& line) {
    std::vector<std::string> results;
    do results.push_back(line.value_name());
    while (line.take(","));
    line.need("=");
    const OpDefinition& op = operation(line);
    Node node{op.kind, {}, {}, {}, {}};
    std::vector<NameUse> operands = operand_list(line);
    attributes(line, node.attributes);
    line.need(":");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i > 0) line.need(",");
      node.outputs.push_back(result(results[i], line.type()));
    }
    node.super_kernel = mark(line);
    if (line.take("//")) node.scope = line.name("a scope");
    operands.resize(
        std::max(operands.size(), op.inputs.size() - (op.inputs.empty() || !op.inputs.back().variadic ? 0 : 1)),
        {"", line.number()});
    operands_.push_back(std::move(operands));
    nodes_.push_back(std::move(node));
  }

  ValueId result(const std::string& name, TensorType type) {
    const auto producer = static_cast<std::int32_t>(nodes_.size());
    const auto known = by_name_.find(name);
    if (known != by_name_.end() && values_[known->second.at()].kind == ValueKind::intermediate) return known->second;
    return define(name, std::move(type), ValueKind::intermediate, producer);
  }

  static std::vector<NameUse> operand_list(TextLine& line) {
    std::vector<NameUse> operands;
    line.need("(");
    if (line.take(")")) return operands;
    do operands.push_back({line.take("-") ? "" : line.value_name(), line.number()});
    while (line.take(","));
    line.need(")");
    return operands;
  }

  static void attributes(TextLine& line, Attributes& attributes) {
    if (!line.take("{") || line.take("}")) return;
    do {
      const std::string name = line.name("an attribute's name");
      line.need("=");
      AttributeValue value = line.attribute_value();
      if (auto* subgraph = std::get_if<Subgraph>(&value)) value = nested(line, name, subgraph->text);
      attributes.set(name, std::move(value));
    } while (line.take(","));
    line.need("}");
  }

  static Subgraph nested(const TextLine& line, std::string_view attribute, std::string_view text) try {
    return make_subgraph(parse_graph(text));
  } catch (const Error& error) {
    throw Error(error.status(),
                fmt::format("graph text, line {}: attribute '{}': {}", line.number(), attribute, error.what()));
  }

  ValueId resolve(const NameUse& use) const {
    if (use.name.empty()) return {};
    const auto known = by_name_.find(use.name);
    if (known == by_name_.end())
      fail(Status::invalid_argument,
           "graph text, line {}: value %{}: expected a value of the graph, found none of that name", use.line,
           name_text(use.name));
    return known->second;
  }
  void resolve_expressions() {
    for (const auto& [id, operands] : expressions_)
      for (const NameUse& use : operands)
        std::get<ConstantExpression>(values_[id.at()].source).inputs.push_back(resolve(use));
  }
  std::vector<Node> resolve_nodes() {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      for (const NameUse& use : operands_[n]) nodes_[n].inputs.push_back(resolve(use));
    return std::move(nodes_);
  }
  std::vector<GraphOutput> resolve_outputs() {
    std::vector<GraphOutput> outputs;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      outputs.push_back({outputs_[i], resolve(output_values_[i]), output_orders_[i]});
    return outputs;
  }

  std::string_view text_;
  std::size_t begin_ = 0, number_ = 0;
  std::vector<Value> values_;
  std::unordered_map<std::string, ValueId> by_name_;  ///< the first value of each name
  std::vector<Node> nodes_;
  std::vector<std::vector<NameUse>> operands_;                         ///< by node
  std::vector<std::pair<ValueId, std::vector<NameUse>>> expressions_;  ///< operands of constants
  SymbolRanges ranges_;
  std::vector<SuperKernel> super_kernels_;
  std::vector<std::string> outputs_;
  std::vector<NameUse> output_values_;
  std::vector<Ints> output_orders_;
  std::vector<std::pair<NameUse, NameUse>> updates_;  ///< an input and what it holds in the end
};

}  // namespace

Graph parse_unverified_graph(std::string_view text) { return GraphParser(text).run(); }

Graph parse_graph(std::string_view text) {
  Graph graph = parse_unverified_graph(text);
  const auto broken = find_violation(graph);
  if (broken) throw Error(Status::invalid_argument, *broken);
  return graph;
}

}  // namespace cermet
