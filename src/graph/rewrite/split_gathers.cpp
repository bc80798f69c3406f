// Exporters part queries, keys and values as x.reshape(.., 3, heads, dim).permute(2, ..)[0], [1], [2]: a transposition
// of all three and three copies. They are columns of x.
#include <algorithm>

#include "graph/rewrite/derive/axes.hpp"
#include "graph/rewrite/replace.hpp"
#include "op/schema/axes.hpp"

namespace cermet {
namespace {

/// The one index of a gather; nothing where it is not known.
std::optional<std::int64_t> index_of(const GraphEditor& editor, const Node& gather, const Dim& extent) {
  const Value& indices = editor.value(gather.inputs[1]);
  if (indices.type.rank() != 0 || !extent.is_constant()) return {};
  const auto found = uniform_value(indices);
  if (!found) return {};
  const auto index = static_cast<std::int64_t>(*found);
  return index < 0 ? index + extent.constant() : index;
}

/// Without one entry, which numbers after it close up to.
Ints without(const Ints& permutation, std::int64_t axis) {
  Ints other_axes;
  for (const std::int64_t a : permutation)
    if (a != axis) other_axes.push_back(a > axis ? a - 1 : a);
  return other_axes;
}

}  // namespace

bool split_gathers(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node first = editor.node(anchor);
  const NodeId turn = editor.producer(first.inputs[0]);
  if (turn == no_node || editor.node(turn).op != OpKind::transpose) return false;
  const ValueId turned = first.inputs[0], parted = editor.node(turn).inputs[0];
  const NodeId part = editor.producer(parted);
  if (part == no_node || editor.node(part).op != OpKind::reshape || editor.uses(parted).size() != 1 ||
      editor.is_output(parted) || editor.is_output(turned))
    return false;
  const ValueId x = editor.node(part).inputs[0];
  const Ints permutation = permutation_of(editor, turn);
  const Dims dims = editor.value(parted).type.dims;
  const auto gathered_axis = [&](const Node& gather) {
    const AttributeValue* given = gather.attributes.find("axis");
    return wrap_axis(given ? std::get<std::int64_t>(*given) : 0, static_cast<int>(dims.size()));
  };
  const int axis = gathered_axis(first);
  const std::int64_t cut = permutation[static_cast<std::size_t>(axis)];
  // The dimension is the slowest of those that are columns of x.
  Dim columns = 1;
  for (auto a = static_cast<std::size_t>(cut); a < dims.size(); ++a) columns = columns * dims[a];
  const Dim& extent = dims[static_cast<std::size_t>(cut)];
  const Dims& x_dims = editor.value(x).type.dims;
  if (x_dims.size() < 2 || columns != x_dims.back() || !columns.is_constant() || columns == Dim(0) ||
      extent.constant() > max_variadic)
    return false;
  std::vector<std::pair<NodeId, std::int64_t>> gathers;
  for (const Use use : editor.uses(turned)) {
    const Node& reader = editor.node(use.node);
    if (reader.op != OpKind::gather || use.operand != 0 || gathered_axis(reader) != axis) return false;
    const auto index = index_of(editor, reader, extent);
    if (!index || *index < 0 || *index >= extent.constant()) return false;
    gathers.emplace_back(use.node, *index);
  }
  Ints shape;
  for (std::size_t a = 0; a < dims.size(); ++a)
    if (static_cast<std::int64_t>(a) != cut)
      shape.push_back(dims[a].is_constant() ? dims[a].constant() : a < x_dims.size() && x_dims[a] == dims[a] ? 0 : -1);
  if (std::ranges::count(shape, -1) > 1) return false;
  const Ints sizes(static_cast<std::size_t>(extent.constant()), columns.constant() / extent.constant());
  const std::vector<ValueId> parts =
      editor.insert_before(turn, OpKind::split, {x}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}}, first.scope);
  for (const auto& [gather, index] : gathers) {
    const Node node = editor.node(gather);
    const ValueId own = editor.insert_before(gather, OpKind::reshape, {parts[static_cast<std::size_t>(index)]},
                                             {{"shape", shape}}, node.scope)[0];
    const ValueId made = editor.insert_before(gather, OpKind::transpose, {own},
                                              {{"permutation", without(permutation, cut)}}, node.scope)[0];
    const std::string name = editor.value(node.outputs[0]).name;
    const NodeId nodes[] = {gather};
    const std::pair<ValueId, ValueId> results[] = {{node.outputs[0], made}};
    editor.replace(nodes, results);
    editor.rename(made, name);
  }
  editor.erase(turn);
  editor.erase(part);
  return true;
}

}  // namespace cermet
