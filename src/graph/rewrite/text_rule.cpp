#include <algorithm>

#include "graph/memory.hpp"
#include "graph/rewrite/replace.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

/// Whether a node outside the match updates memory that the new node will read later than the old ones did.
bool is_updated_elsewhere(const GraphEditor& editor, const Match& match, ValueId id) {
  return std::ranges::any_of(editor.uses(id), [&](Use use) {
    if (std::ranges::find(match.nodes, use.node) != match.nodes.end()) return false;
    const Node& node = editor.node(use.node);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (overwritten_by(node, o) == id) return true;
    return false;
  });
}

std::vector<std::string> names_of(const std::vector<PatternNode::Name>& names) {
  std::vector<std::string> list;
  for (const PatternNode::Name& name : names) list.push_back(name.text);
  return list;
}

/// Attributes that say what the schema says anyway are left out, as nobody would write them.
Attributes without_defaults(OpKind op, const Attributes& attributes) {
  Attributes given;
  for (const auto& [name, value] : attributes) {
    const auto& specs = definition(op).attributes;
    const auto spec = std::ranges::find(specs, name, &AttributeSpec::name);
    if (spec == specs.end() || spec->fallback != value) given.set(name, value);
  }
  return given;
}

bool apply_text(const Rule& rule, GraphEditor& editor, NodeId anchor) {
  const auto match = find_match(rule.before, editor, anchor, names_of(rule.after.results));
  if (!match || !rule.fits(*match)) return false;
  const std::string scope = editor.node(anchor).scope;
  std::vector<ValueId> inputs;
  for (const PatternNode::Name& operand : rule.after.operands) {
    inputs.push_back(match->at(operand.text));
    if (inputs.back() && is_updated_elsewhere(editor, *match, inputs.back())) return false;
  }
  const Attributes attributes = without_defaults(rule.after.op, rule.attributes(*match));
  std::vector<ValueId> made;
  try {
    made = editor.insert_after(anchor, rule.after.op, inputs, attributes, scope);
  } catch (const Error&) {  // the operator knows best what it does not take; nothing has changed
    return false;
  }
  std::vector<std::pair<ValueId, ValueId>> results;
  std::vector<std::pair<ValueId, std::string>> names;
  for (std::size_t o = 0; o < made.size(); ++o) {
    const ValueId from = match->at(rule.after.results.at(o).text);
    if (!from) continue;
    results.emplace_back(from, made[o]);
    names.emplace_back(made[o], editor.value(from).name);
  }
  editor.replace(match->nodes, results);
  for (const auto& [id, name] : names) editor.rename(id, name);
  return true;
}

}  // namespace

Rule text_rule(std::string_view name, RoundingClass rounding, std::string_view text, bool (*fits)(const Match&), Attributes (*attributes)(const Match&)) {
  const std::size_t arrow = text.find(" -> ");
  CERMET_ASSERT(arrow != std::string_view::npos);
  Rule rule{.name = name, .summary = text, .rounding = rounding};
  rule.before = Pattern::parse(text.substr(0, arrow));
  rule.after = Pattern::parse(text.substr(arrow + 4)).nodes.front();
  rule.anchor = rule.before.nodes.back().op;
  rule.apply = apply_text;
  rule.fits = fits;
  rule.attributes = attributes;
  return rule;
}

}  // namespace cermet
