// Exporters cut columns with a slice for each part: the halves of a gated activation, queries and keys. Slices that
// share out all columns are a split, whose parts are views.
#include <algorithm>

#include "graph/rewrite/replace.hpp"
#include "op/schema/axes.hpp"
#include "op/slice_range.hpp"

namespace cermet {
namespace {

/// Columns of x that a slice of these alone takes; nothing for a node that takes anything else.
struct Columns {
  std::int64_t first, count;
  NodeId slice;
};

std::optional<Columns> columns_of(const GraphEditor& editor, NodeId n, std::int64_t width) {
  const Node& node = editor.node(n);
  if (node.op != OpKind::slice) return {};
  const auto list = [&](std::string_view name) {
    const AttributeValue* const given = node.attributes.find(name);
    return given ? std::get<Ints>(*given) : Ints();
  };
  const Ints starts = list("starts"), ends = list("ends"), axes = list("axes"), steps = list("steps");
  const int rank = editor.value(node.inputs[0]).type.rank();
  if (axes.size() != 1 || ends.size() != 1 || wrap_axis(axes[0], rank) != rank - 1 || (!steps.empty() && steps[0] != 1))
    return {};
  const SliceRange range = slice_range(starts[0], ends[0], 1, width);
  if (range.count == 0) return {};
  return Columns{range.first, range.count, n};
}

}  // namespace

bool split_slices(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node first = editor.node(anchor);
  const ValueId x = first.inputs[0];
  const Dims& dims = editor.value(x).type.dims;
  if (dims.size() < 2 || !dims.back().is_constant() || editor.value(x).kind == ValueKind::constant) return false;
  const std::int64_t width = dims.back().constant();
  std::vector<Columns> parts;
  for (const Use use : editor.uses(x))
    if (const auto part = columns_of(editor, use.node, width)) parts.push_back(*part);
  std::ranges::sort(parts, {}, [](const Columns& part) { return std::pair(part.first, part.slice); });
  if (parts.size() < 2 || parts.size() > static_cast<std::size_t>(max_variadic)) return false;
  std::int64_t end = 0;
  Ints sizes;
  for (const Columns& part : parts) {
    if (part.first != end) return false;
    end += part.count;
    sizes.push_back(part.count);
  }
  if (end != width) return false;
  const std::vector<ValueId> columns = editor.insert_before(
      anchor, OpKind::split, {x}, {{"axis", std::int64_t{-1}}, {"sizes", std::move(sizes)}}, first.scope);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ValueId slice = editor.node(parts[i].slice).outputs[0];
    const std::string name = editor.value(slice).name;
    const NodeId nodes[] = {parts[i].slice};
    const std::pair<ValueId, ValueId> results[] = {{slice, columns[i]}};
    editor.replace(nodes, results);
    editor.rename(columns[i], name);
  }
  return true;
}

}  // namespace cermet
