#include "kernel/region_views.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace cermet {
namespace {

SeenAxes as_it_is(std::size_t rank) {
  SeenAxes axes(rank);
  for (std::size_t a = 0; a < rank; ++a) axes[a] = static_cast<int>(a);
  return axes;
}

/// Of what broadcasts to a value of that many dimensions.
SeenAxes broadcast(SeenAxes axes, std::size_t rank, std::size_t value_rank) {
  for (int& axis : axes) axis = std::max(-1, axis - static_cast<int>(value_rank - rank));
  return axes;
}

/// The operand of a reshape, where its result is seen with `axes`; nothing where more than dimensions of 1 come or go.
std::optional<SeenAxes> behind_reshape(const Dims& from, const Dims& to, const SeenAxes& axes) {
  std::vector<int> source(to.size(), -1);
  std::size_t f = 0;
  for (std::size_t t = 0; t < to.size(); ++t) {
    if (to[t] == Dim(1)) continue;
    while (f < from.size() && from[f] == Dim(1)) ++f;
    if (f == from.size() || from[f] != to[t]) return std::nullopt;
    source[t] = static_cast<int>(f++);
  }
  while (f < from.size() && from[f] == Dim(1)) ++f;
  if (f < from.size()) return std::nullopt;
  SeenAxes made;
  for (const int axis : axes) made.push_back(axis < 0 ? -1 : source[static_cast<std::size_t>(axis)]);
  return made;
}

}  // namespace

RegionViews::RegionViews(const Region& region) : nodes(region.nodes.size()), operands(region.operands.size()) {
  std::vector<bool> known(nodes.size()), known_operand(operands.size());
  const auto note = [&](std::vector<SeenAxes>& list, std::vector<bool>& of, std::size_t at, SeenAxes axes,
                        const RegionNode& reader) {
    if (of[at] && list[at] != axes)
      reason = fmt::format("{}: others see its operand with other dimensions", reader.problem.op->name);
    list[at] = std::move(axes);
    of[at] = true;
  };
  for (const RegionPlace& result : region.results) {
    const auto at = static_cast<std::size_t>(result.node);
    note(nodes, known, at, {}, region.nodes[at]);
  }
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const RegionNode& node = region.nodes[n];
    const Dims& result = node.problem.outputs[0].dims;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.problem.has(i)) continue;
      const Dims& dims = node.problem.input(i).dims;
      std::optional<SeenAxes> axes = SeenAxes();
      if (node.problem.op->kind == OpKind::reshape)
        axes = behind_reshape(dims, result, nodes[n].empty() ? as_it_is(result.size()) : nodes[n]);
      else if (!nodes[n].empty()) axes = broadcast(nodes[n], dims.size(), result.size());
      if (!axes) {
        reason = "reshape: changes more than dimensions of 1";
        return;
      }
      // Elements of a row lie side by side, and the caller knows its last dimension alone: columns of a
      // split are single ones with gaps.
      if (!node.inputs[i].is_inside() && !axes->empty() && axes->back() >= 0 &&
          axes->back() + 1 != static_cast<int>(dims.size())) {
        reason = "reshape: rows are along another dimension than the operand's last";
        return;
      }
      if (*axes == as_it_is(dims.size())) axes->clear();
      const auto from = static_cast<std::size_t>(node.inputs[i].index);
      if (node.inputs[i].is_inside()) note(nodes, known, from, std::move(*axes), node);
      else note(operands, known_operand, from, std::move(*axes), node);
    }
  }
}

Dims seen(const Dims& dims, const SeenAxes& axes, std::size_t rank) {
  if (axes.empty()) return dims;
  Dims made;
  for (const int axis : broadcast(axes, dims.size(), rank))
    made.push_back(axis < 0 ? Dim(1) : dims[static_cast<std::size_t>(axis)]);
  return made;
}

TensorView seen(const TensorView& view, const SeenAxes& axes) {
  if (axes.empty()) return view;
  TensorView made(view.data, view.dtype, {}, {});
  for (const int axis : axes) {
    made.shape.push_back(axis < 0 ? 1 : view.shape[axis]);
    made.strides.push_back(axis < 0 ? 1 : view.strides[axis]);
  }
  return made;
}

}  // namespace cermet
