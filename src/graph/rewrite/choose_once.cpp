// Exporters widen a mask of keys to all queries by an "and" with truth. Numbers that a condition chooses are then alike
// along what it was widened to: they are chosen once, and attention reads them as a bias that is alike for all queries.
#include <algorithm>

#include "graph/rewrite/derive/scores.hpp"
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

/// What a condition was before `widening` widened it, if it did.
std::optional<ValueId> before_widening(const GraphEditor& editor, NodeId widening) {
  if (widening == no_node) return {};
  const Node& node = editor.node(widening);
  if (node.op == OpKind::expand) return node.inputs[0];
  if (node.op != OpKind::logical_and) return {};
  for (const std::size_t side : {0, 1})
    if (uniform_of(editor, node.inputs[1 - side]) == 1.0) return node.inputs[side];
  return {};
}

}  // namespace

bool choose_once(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node node = editor.node(anchor);
  const ValueId wide = node.outputs[0];
  std::vector<NodeId> dying{anchor};
  ValueId narrow = node.inputs[0];
  for (NodeId n = editor.producer(narrow); const auto before = before_widening(editor, n);
       n = editor.producer(narrow)) {
    const bool is_alone =
        dying.back() == editor.uses(narrow)[0].node && editor.uses(narrow).size() == 1 && !editor.is_output(narrow);
    if (is_alone) dying.push_back(n);
    narrow = *before;
  }
  const auto is_number = [&](ValueId id) { return editor.value(id).type.elements() == Dim(1); };
  const Dims dims = editor.value(wide).type.dims;
  const auto is_known = [](const Dim& dim) { return dim.is_constant(); };
  if (narrow == node.inputs[0] || !is_number(node.inputs[1]) || !is_number(node.inputs[2]) ||
      !std::ranges::all_of(dims, is_known))
    return false;
  const Dim count = editor.value(wide).type.elements();
  if (count == Dim(0) || editor.value(narrow).type.elements() == count) return false;
  const ValueId chosen =
      editor.insert_before(anchor, OpKind::where, {narrow, node.inputs[1], node.inputs[2]}, {}, node.scope)[0];
  Ints shape;
  for (const Dim& dim : dims) shape.push_back(dim.constant());
  const ValueId made = editor.insert_before(anchor, OpKind::expand, {chosen}, {{"shape", shape}}, node.scope)[0];
  const std::string name = editor.value(wide).name;
  const std::pair<ValueId, ValueId> results[] = {{wide, made}};
  editor.replace(dying, results);
  editor.rename(made, name);
  return true;
}

}  // namespace cermet
