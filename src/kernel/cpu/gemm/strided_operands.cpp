#include "kernel/cpu/gemm/strided_operands.hpp"

#include <algorithm>

#include "kernel/cpu/movement/axis_order.hpp"

namespace cermet::cpu {
namespace {

bool is_view(const RegionNode& node) {
  return node.problem.op->kind == OpKind::reshape || node.problem.op->kind == OpKind::transpose;
}

/// For each dimension of a reshape's result the dimension of its operand that it is a part of, -1 where it is a new 1;
/// nothing where dimensions are joined.
std::optional<Ints> parts_of(const Dims& from, const Dims& to) {
  Ints parts;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == Dim(1)) continue;  // those of the result are new ones
    while (parts.size() < to.size() && to[parts.size()] == Dim(1)) parts.push_back(-1);
    std::int64_t left = from[axis].is_constant() ? from[axis].constant() : 0;
    do {
      if (parts.size() == to.size()) return std::nullopt;
      const Dim& part = to[parts.size()];
      const bool whole = part == from[axis] && (left == 0 || left == from[axis].constant());
      if (!whole && (left == 0 || !part.is_constant() || part.constant() == 0 || left % part.constant() != 0))
        return std::nullopt;
      left = whole ? 1 : left / part.constant();
      parts.push_back(static_cast<std::int64_t>(axis));
    } while (left > 1);
  }
  while (parts.size() < to.size() && to[parts.size()] == Dim(1)) parts.push_back(-1);
  return parts.size() == to.size() ? std::optional(parts) : std::nullopt;
}

}  // namespace

bool StridedOperands::make_all(const Region& region) {
  return region.anchor > 0 && std::all_of(region.nodes.begin(), region.nodes.begin() + region.anchor, is_view);
}

Decline StridedOperands::find(const Region& region, std::size_t input, std::size_t& operand, Axes& axes) {
  const auto anchor = static_cast<std::size_t>(region.anchor);
  const Dims& dims = region.nodes[anchor].problem.input(input).dims;
  for (std::size_t a = 0; a < dims.size(); ++a) axes.push_back({static_cast<std::int64_t>(a), 1, 0});
  std::size_t node = anchor, reads = input;
  for (; region.nodes[node].inputs[reads].is_inside(); reads = 0) {
    node = static_cast<std::size_t>(region.nodes[node].inputs[reads].index);
    const Problem& p = region.nodes[node].problem;
    if (p.op->kind == OpKind::transpose) {
      const Ints order = order_of_axes(p);
      for (Axis& axis : axes)
        if (axis.from >= 0) axis.from = order[static_cast<std::size_t>(axis.from)];
      continue;
    }
    const Dims &from = p.input(0).dims, &to = p.outputs[0].dims;
    const std::optional<Ints> parts = parts_of(from, to);
    if (!parts) return "a reshape joins dimensions";
    for (Axis& axis : axes) {
      if (axis.from < 0) continue;
      const auto at = static_cast<std::size_t>(axis.from);
      const std::int64_t part = (*parts)[at];
      std::int64_t behind = 1;
      for (std::size_t next = at + 1; part >= 0 && next < to.size(); ++next)
        if ((*parts)[next] == part) behind *= to[next].constant();
      if (part >= 0 && axis.size == 0 && from[static_cast<std::size_t>(part)] != to[at]) axis.size = to[at].constant();
      axis.inner *= behind;
      axis.from = part;
    }
  }
  const std::optional<std::size_t> place = region.operand_of(node, reads);
  if (!place) return "an operand is not given";
  operand = *place;
  return std::nullopt;
}

Decline StridedOperands::declines(const Region& region) {
  const RegionNode& anchor = region.nodes[static_cast<std::size_t>(region.anchor)];
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before {}: {}", region.nodes[static_cast<std::size_t>(region.anchor) - 1].problem.op->name,
                       anchor.problem.op->name, why);
  };
  if (std::ranges::any_of(region.results, [&](const RegionPlace& place) { return place.node < region.anchor; }))
    return fails("others read it, too");
  for (std::size_t i = 0; i < anchor.problem.inputs.size(); ++i) {
    if (i > 1 && anchor.inputs[i].is_inside()) return fails(fmt::format("it makes {}", anchor.problem.input_name(i)));
    if (i > 1 || !anchor.inputs[i].is_inside()) continue;
    std::size_t operand = 0;
    Axes axes;
    if (Decline reason = find(region, i, operand, axes)) return fails(*reason);
    // Operands lie with the elements of their last dimension side by side.
    const std::int64_t last = region.operand_type(operand).rank() - 1;
    const auto is_dense = [&](const Axis& axis) { return axis.from == last && axis.inner == 1; };
    if (std::none_of(axes.end() - 2, axes.end(), is_dense)) return fails("neither rows nor columns lie together");
  }
  return std::nullopt;
}

StridedOperands::StridedOperands(const Region& region) {
  const RegionNode& anchor = region.nodes[static_cast<std::size_t>(region.anchor)];
  for (std::size_t i = 0; i < std::min<std::size_t>(2, anchor.inputs.size()); ++i) {
    Operand& operand = operands_.emplace_back();
    const Decline reason = find(region, i, operand.place, operand.axes);
    CERMET_ASSERT(!reason);
  }
}

TensorView StridedOperands::operator()(const LaunchArgs& args, std::size_t input) const {
  const Operand& operand = operands_[input];
  const TensorView& from = args.inputs[operand.place];
  TensorView view = from;
  view.shape = view.strides = {};
  for (const Axis& axis : operand.axes) {
    const int at = static_cast<int>(axis.from);
    view.shape.push_back(axis.from < 0 ? 1 : axis.size != 0 ? axis.size : from.shape[at]);
    view.strides.push_back(axis.from < 0 ? 0 : from.strides[at] * axis.inner);
  }
  return view;
}

}  // namespace cermet::cpu
