#include "graph/rewrite/pattern.hpp"

#include <algorithm>

#include "op/operator.hpp"
#include "op/text_reader.hpp"

namespace cermet {
namespace {

PatternNode::Name read_name(TextReader& reader) {
  if (reader.take('-')) return {"-", false};
  std::string name(reader.name("a value's name"));
  return {std::move(name), reader.take('?')};
}

PatternNode read_node(TextReader& reader) {
  PatternNode node;
  do node.results.push_back(read_name(reader));
  while (reader.take(','));
  reader.need('=');
  const std::size_t begin = (reader.skip_spaces(), reader.position());
  const OpDefinition* op = find_operator(reader.name("an operator"));
  if (!op) {
    reader.back_to(begin);
    reader.expected("an operator");
  }
  node.op = op->kind;
  reader.need('(');
  do node.operands.push_back(read_name(reader));
  while (reader.take(','));
  reader.need(')');
  return node;
}

class Matcher {
 public:
  Matcher(const Pattern& pattern, const GraphEditor& editor) : pattern_(pattern) {
    match_.editor = &editor;
    match_.nodes.assign(pattern.nodes.size(), no_node);
  }

  std::optional<Match> from(NodeId anchor, const std::vector<std::string>& kept) {
    if (!take(pattern_.nodes.size() - 1, anchor)) return {};
    for (std::size_t p = 0; p < pattern_.nodes.size(); ++p)
      if (match_.nodes[p] == no_node || !inner_reads_only(p, kept)) return {};
    return std::move(match_);
  }

 private:
  const GraphEditor& editor() const { return *match_.editor; }

  bool take(std::size_t p, NodeId n) {
    if (match_.nodes[p] != no_node) return match_.nodes[p] == n;
    const Node& node = editor().node(n);
    if (node.op != pattern_.nodes[p].op || std::ranges::find(match_.nodes, n) != match_.nodes.end()) return false;
    const Match before = match_;
    if (take_with(p, n, node.inputs)) return true;
    match_ = before;
    if (!definition(node.op).commutative || node.inputs.size() != 2) return false;
    if (take_with(p, n, {node.inputs[1], node.inputs[0]})) return true;
    match_ = before;
    return false;
  }

  bool take_with(std::size_t p, NodeId n, const std::vector<ValueId>& inputs) {
    const PatternNode& wanted = pattern_.nodes[p];
    match_.nodes[p] = n;
    return bind(wanted.results, editor().node(n).outputs) && bind(wanted.operands, inputs) && take_producers(wanted);
  }

  bool bind(const std::vector<PatternNode::Name>& names, const std::vector<ValueId>& ids) {
    for (std::size_t i = 0; i < std::max(names.size(), ids.size()); ++i) {
      const ValueId id = i < ids.size() ? ids[i] : ValueId{};
      const bool given = i < names.size() && names[i].text != "-";
      if (!given && id) return false;
      if (!given) continue;
      if (!id && !names[i].optional) return false;
      if (id && match_.values.emplace(names[i].text, id).first->second != id) return false;
    }
    return true;
  }

  bool take_producers(const PatternNode& wanted) {
    for (const PatternNode::Name& operand : wanted.operands)
      for (std::size_t p = 0; p < pattern_.nodes.size(); ++p) {
        const auto& results = pattern_.nodes[p].results;
        if (!match_.has(operand.text) || std::ranges::find(results, operand.text, &PatternNode::Name::text) == results.end()) continue;
        const NodeId producer = editor().producer(match_.at(operand.text));
        if (producer == no_node || !take(p, producer)) return false;
      }
    return true;
  }

  bool inner_reads_only(std::size_t p, const std::vector<std::string>& kept) const {
    for (const PatternNode::Name& result : pattern_.nodes[p].results) {
      if (!match_.has(result.text) || std::ranges::find(kept, result.text) != kept.end()) continue;
      const ValueId id = match_.at(result.text);
      const auto inside = [&](Use use) { return std::ranges::find(match_.nodes, use.node) != match_.nodes.end(); };
      if (editor().is_output(id) || !std::ranges::all_of(editor().uses(id), inside)) return false;
    }
    return true;
  }

  const Pattern& pattern_;
  Match match_;
};

}  // namespace

Pattern Pattern::parse(std::string_view text) {
  TextReader reader("pattern", text);
  Pattern pattern;
  do pattern.nodes.push_back(read_node(reader));
  while (reader.take(';'));
  reader.finish();
  return pattern;
}

Attributes Match::attributes(std::size_t node) const {
  const Node& found = editor->node(nodes.at(node));
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : found.inputs) types.push_back(id ? std::optional(editor->value(id).type) : std::nullopt);
  return make_problem(definition(found.op), std::move(types), found.attributes).attributes;
}

std::optional<Match> find_match(const Pattern& pattern, const GraphEditor& editor, NodeId anchor, const std::vector<std::string>& kept) {
  return Matcher(pattern, editor).from(anchor, kept);
}

}  // namespace cermet
