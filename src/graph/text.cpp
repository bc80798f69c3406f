#include "graph/text.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "graph/verify.hpp"
#include "op/type_text.hpp"

namespace cermet {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_.:/-").find(c) != std::string_view::npos;
}

std::string name_text(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
  return plain ? std::string(name) : escape(name);
}

std::string value_text(const Graph& graph, ValueId id) { return id ? "%" + name_text(graph.value(id).name) : "-"; }

template <class Range, class Text>
std::string comma_separated(const Range& range, Text text) {
  std::string out;
  for (const auto& item : range) out += (out.empty() ? "" : ", ") + text(item);
  return out;
}

std::string node_text(const Graph& graph, const Node& node) {
  const auto value = [&](ValueId id) { return value_text(graph, id); };
  const auto attribute = [](const auto& entry) { return fmt::format("{} = {}", entry.first, to_string(entry.second)); };
  // Optional operands at the end that are not given need no mark.
  std::vector<ValueId> inputs = node.inputs;
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::string line = fmt::format("  {} = {}({})", comma_separated(node.outputs, value), definition(node.op).name, comma_separated(inputs, value));
  if (node.attributes.size() > 0) line += fmt::format(" {{{}}}", comma_separated(node.attributes, attribute));
  line += " : " + comma_separated(node.outputs, [&](ValueId id) { return graph.type(id).to_string(); });
  return node.scope.empty() ? line + "\n" : fmt::format("{}  // {}\n", line, name_text(node.scope));
}

/// Walks one line.
class Line {
 public:
  Line(std::string_view text, std::size_t number) : text_(text), number_(number) { skip_spaces(); }

  /// Hands the next `size` bytes to a parser of types or values.
  template <class Parser>
  auto parse(Parser parser, std::size_t size) try {
    auto value = parser(text_.substr(at_, size));
    move(size);
    return value;
  } catch (const Error& error) {
    throw Error(error.status(), fmt::format("graph text, line {}: {}", number_, error.what()));
  }

  [[noreturn]] void expected(std::string_view wanted) const {
    fail(Status::invalid_argument, "graph text, line {}: expected {} at column {}, found {}", number_, wanted, at_ + 1,
         at_ < text_.size() ? quote(text_.substr(at_), 40) : "the end of the line");
  }
  bool at_end() const { return at_ == text_.size(); }
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_spaces();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) expected(fmt::format("'{}'", token));
  }
  /// A word of its own: followed by a space or the end.
  bool take_word(std::string_view word) {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with(word) && (rest.size() == word.size() || rest[word.size()] == ' ') && take(word);
  }
  /// A plain or quoted name.
  std::string name(std::string_view wanted) {
    if (text_.substr(at_).starts_with('"')) {
      std::size_t size = 0;
      const auto name = unescape(text_.substr(at_), size);
      if (!name) expected(fmt::format("{} with its closing quote", wanted));
      move(size);
      return *name;
    }
    const auto end = std::find_if_not(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.end(), is_plain);
    const auto size = static_cast<std::size_t>(end - text_.begin()) - at_;
    if (size == 0) expected(wanted);
    return std::string(slice(size));
  }
  std::string value_name() {
    if (!text_.substr(at_).starts_with('%')) expected("a value such as %x");
    ++at_;
    return name("a value's name");
  }
  TensorType type() {
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) expected("a type such as bf16[T, 64]");
    return parse([&](std::string_view text) { return parse_tensor_type(text); }, end + 1 - at_);
  }
  AttributeValue attribute_value() {
    std::size_t size = 0;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with('"')) {
      if (!unescape(rest, size)) expected("a string with its closing quote");
    } else {
      size = std::min(rest.starts_with('[') ? rest.find(']') : rest.find_first_of(",} "), rest.size());
      if (rest.starts_with('[')) size = std::min(size + 1, rest.size());
    }
    return parse([&](std::string_view text) { return parse_attribute_value(text); }, size);
  }
  std::size_t number() const { return number_; }

 private:
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r", at_), text_.size()); }
  void move(std::size_t size) {
    at_ += size;
    skip_spaces();
  }
  std::string_view slice(std::size_t size) {
    const std::string_view s = text_.substr(at_, size);
    move(size);
    return s;
  }
  std::string_view text_;
  std::size_t number_;
  std::size_t at_ = 0;
};

/// A use of a value by name, resolved when every definition is known.
struct NameUse {
  std::string name;  ///< empty for an operand that is not given
  std::size_t line;
};

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text) {}

  Graph run() {
    Line header = next_line("'graph NAME {'");
    header.need("graph");
    std::string name = header.take("{") ? "" : header.name("the graph's name");
    if (!name.empty()) header.need("{");
    end_of(header);
    for (Line line = next_line("'}'"); !line.take("}"); line = next_line("'}'")) {
      statement(line);
      end_of(line);
    }
    return Graph::from_parts(std::move(name), std::move(values_), resolve_nodes(), resolve_outputs());
  }

 private:
  /// The next line that means something.
  Line next_line(std::string_view wanted) {
    for (;;) {
      if (begin_ >= text_.size()) fail(Status::invalid_argument, "graph text, line {}: expected {}, found the end", number_ + 1, wanted);
      const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
      Line line(text_.substr(begin_, end - begin_), ++number_);
      begin_ = end + 1;
      if (!line.at_end() && !line.take("//")) return line;
    }
  }
  static void end_of(Line& line) {
    if (!line.at_end()) line.expected("the end of the line");
  }

  void statement(Line& line) {
    if (line.take_word("input")) return declare(line, ValueKind::input);
    if (line.take_word("constant")) return declare(line, ValueKind::constant);
    if (line.take_word("output")) {
      std::string name = line.name("the output's name");
      line.need("=");
      outputs_.push_back(std::move(name));
      output_values_.push_back({line.value_name(), line.number()});
      return;
    }
    node(line);
  }

  void declare(Line& line, ValueKind kind) {
    std::string name = line.value_name();
    line.need(":");
    define(std::move(name), line.type(), kind, -1);
  }

  ValueId define(std::string name, TensorType type, ValueKind kind, std::int32_t producer) {
    const ValueId id{static_cast<std::int32_t>(values_.size())};
    by_name_.emplace(name, id);
    values_.push_back({std::move(name), std::move(type), kind, producer});
    return id;
  }

  void node(Line& line) {
    std::vector<std::string> results;
    do results.push_back(line.value_name());
    while (line.take(","));
    line.need("=");
    const std::string op_name = line.name("an operator");
    const OpDefinition* op = find_operator(op_name);
    if (!op) fail(Status::invalid_argument, "graph text, line {}: expected an operator, found '{}'", line.number(), op_name);
    Node node{op->kind, {}, {}, {}, {}};
    std::vector<NameUse> operands = operand_list(line);
    attributes(line, node.attributes);
    line.need(":");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i > 0) line.need(",");
      node.outputs.push_back(result(results[i], line.type()));
    }
    if (line.take("//")) node.scope = line.name("a scope");
    operands.resize(std::max(operands.size(), op->inputs.size() - (op->inputs.empty() || !op->inputs.back().variadic ? 0 : 1)), {"", line.number()});
    operands_.push_back(std::move(operands));
    nodes_.push_back(std::move(node));
  }

  ValueId result(const std::string& name, TensorType type) {
    const auto producer = static_cast<std::int32_t>(nodes_.size());
    const auto known = by_name_.find(name);
    if (known != by_name_.end() && values_[static_cast<std::size_t>(known->second.index)].kind == ValueKind::intermediate) return known->second;
    return define(name, std::move(type), ValueKind::intermediate, producer);
  }

  static std::vector<NameUse> operand_list(Line& line) {
    std::vector<NameUse> operands;
    line.need("(");
    if (line.take(")")) return operands;
    do operands.push_back({line.take("-") ? "" : line.value_name(), line.number()});
    while (line.take(","));
    line.need(")");
    return operands;
  }

  static void attributes(Line& line, Attributes& attributes) {
    if (!line.take("{") || line.take("}")) return;
    do {
      const std::string name = line.name("an attribute's name");
      line.need("=");
      attributes.set(name, line.attribute_value());
    } while (line.take(","));
    line.need("}");
  }

  ValueId resolve(const NameUse& use) const {
    if (use.name.empty()) return {};
    const auto known = by_name_.find(use.name);
    if (known == by_name_.end())
      fail(Status::invalid_argument, "graph text, line {}: value %{}: expected a value of the graph, found none of that name", use.line, name_text(use.name));
    return known->second;
  }
  std::vector<Node> resolve_nodes() {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      for (const NameUse& use : operands_[n]) nodes_[n].inputs.push_back(resolve(use));
    return std::move(nodes_);
  }
  std::vector<GraphOutput> resolve_outputs() {
    std::vector<GraphOutput> outputs;
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs.push_back({outputs_[i], resolve(output_values_[i])});
    return outputs;
  }

  std::string_view text_;
  std::size_t begin_ = 0, number_ = 0;
  std::vector<Value> values_;
  std::map<std::string, ValueId, std::less<>> by_name_;  ///< the first value of each name
  std::vector<Node> nodes_;
  std::vector<std::vector<NameUse>> operands_;  ///< by node
  std::vector<std::string> outputs_;
  std::vector<NameUse> output_values_;
};

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = graph.name.empty() ? "graph {\n" : fmt::format("graph {} {{\n", name_text(graph.name));
  std::size_t declared = 0;  // inputs and constants stand where they were declared among the results
  const auto declare_until = [&](std::size_t end) {
    for (; declared < end; ++declared) {
      const Value& value = graph.values()[declared];
      if (value.kind == ValueKind::intermediate) continue;
      text += fmt::format("  {} %{} : {}\n", value.kind == ValueKind::input ? "input" : "constant", name_text(value.name), value.type.to_string());
    }
  };
  for (const Node& node : graph.nodes()) {
    if (!node.outputs.empty()) declare_until(std::max(declared, static_cast<std::size_t>(node.outputs.front().index)));
    text += node_text(graph, node);
  }
  declare_until(graph.values().size());
  for (const GraphOutput& output : graph.outputs()) text += fmt::format("  output {} = {}\n", name_text(output.name), value_text(graph, output.value));
  return text + "}\n";
}

Graph parse_unverified_graph(std::string_view text) { return GraphParser(text).run(); }

Graph parse_graph(std::string_view text) {
  Graph graph = parse_unverified_graph(text);
  const auto broken = find_violation(graph);
  if (broken) throw Error(Status::invalid_argument, *broken);
  return graph;
}

}  // namespace cermet
