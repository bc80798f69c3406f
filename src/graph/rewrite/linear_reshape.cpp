#include "graph/rewrite/replace.hpp"

namespace cermet {

/// Rows are parted in front of the product, where another reshape may have joined them, so that what reads the result
/// meets it directly.
bool part_rows_before_linear(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node reshape = editor.node(anchor);
  const NodeId product = editor.producer(reshape.inputs[0]);
  if (product == no_node || editor.node(product).op != OpKind::linear) return false;
  const Node linear = editor.node(product);
  const ValueId y = linear.outputs[0], z = reshape.outputs[0];
  if (editor.uses(y).size() != 1 || editor.is_output(y)) return false;
  // Only two reshapes become one: products of one operand stay products of one operand.
  const NodeId joined = editor.producer(linear.inputs[0]);
  if (joined == no_node || editor.node(joined).op != OpKind::reshape) return false;
  const Dims &from = editor.value(y).type.dims, &to = editor.value(z).type.dims;
  const Dim width = editor.value(linear.inputs[0]).type.dims.back();
  if (from.empty() || to.empty() || from.back() != to.back() || !width.is_constant() || width == Dim(0) || from == to)
    return false;
  const AttributeValue* const given = reshape.attributes.find("shape");
  if (!given) return false;  // dimensions as text
  Ints shape = std::get<Ints>(*given);
  if (shape.size() != to.size()) return false;
  shape.back() = width.constant();
  for (std::size_t a = 0; a + 1 < shape.size(); ++a)
    if (shape[a] == 0 && a + 1 >= from.size()) return false;
  std::vector<ValueId> inputs = linear.inputs;
  inputs[0] = editor.insert_before(product, OpKind::reshape, {inputs[0]}, {{"shape", shape}}, linear.scope)[0];
  const ValueId made = editor.insert_before(product, OpKind::linear, inputs, linear.attributes, linear.scope)[0];
  const std::string name = editor.value(z).name;
  const NodeId nodes[] = {product, anchor};
  const std::pair<ValueId, ValueId> results[] = {{z, made}};
  editor.replace(nodes, results);
  editor.rename(made, name);
  return true;
}

}  // namespace cermet
