// Skeleton of a rewrite rule that a row of texts cannot say: here no operator takes the place of the one that goes.
// Copy to src/graph/rewrite/NAME.cpp, declare it in replace.hpp, and add its row to make_rules() in rules.cpp, where
// rules that are texts ("y = neg(x); z = neg(y) -> ..") need nothing else:
//
//   rules.push_back({.name = "idle-cast", .summary = "cast(x) -> x, of one type", .rounding = exact, .anchor =
//   OpKind::cast, .apply = idle_cast});
//
// The tests ask for tests/graph/golden/rewrite/NAME.before.graph, which it rewrites, and NAME.kept.graph, which it
// leaves alone.
#include "graph/memory.hpp"
#include "graph/rewrite/rule.hpp"

namespace cermet {
namespace {

/// Whether a node updates the value's memory: who read the copy would see the update.
bool is_updated(const GraphEditor& editor, ValueId id) {
  return std::ranges::any_of(editor.uses(id), [&](Use use) {
    const Node& node = editor.node(use.node);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (overwritten_by(node, o) == id) return true;
    return false;
  });
}

}  // namespace

/// Called for every node of the anchor's operator, and again when something around it has changed. Returns whether it
/// changed the graph, in time that does not depend on the graph's size.
bool idle_cast(const Rule&, GraphEditor& editor, NodeId anchor) {
  const ValueId x = editor.node(anchor).inputs[0], y = editor.node(anchor).outputs[0];
  if (editor.value(x).type != editor.value(y).type || is_updated(editor, x) || is_updated(editor, y)) return false;
  editor.replace_uses(y, x);
  editor.erase(anchor);
  return true;
}

}  // namespace cermet
