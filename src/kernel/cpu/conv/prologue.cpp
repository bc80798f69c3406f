#include "kernel/cpu/conv/prologue.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/before_anchor.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/step_builder.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {
namespace {

/// Where axis `axis` of x is in a view that is broadcast to it; negative where the view has fewer dimensions.
int axis_of(const TensorView& view, int rank, int axis) { return axis - (rank - view.shape.rank()); }

/// Whether the spatial axes of a view can be walked as one: it has all pixels of x one after the other, or one value
/// for all.
bool is_one_line(const TensorView& view, const Shape& x) {
  bool whole = true, single = true;
  for (int axis = 1; axis + 1 < x.rank(); ++axis) {
    const int own = axis_of(view, x.rank(), axis);
    const std::int64_t size = own < 0 ? 1 : view.shape[own];
    if (size != 1) single = false;
    const bool dense = own >= 0 && size == x[axis] &&
                       (axis + 2 >= x.rank() || view.strides[own] == view.strides[own + 1] * view.shape[own + 1]);
    if (!dense) whole = false;
  }
  return whole || single;
}

/// Whether a view that is broadcast to x has more pixels than one.
bool has_pixels(const TensorView& view, int rank) {
  for (int axis = 1; axis + 1 < rank; ++axis)
    if (const int own = axis_of(view, rank, axis); own >= 0 && view.shape[own] != 1) return true;
  return false;
}

/// The part of a view that belongs to a line.
TensorView part_of(const TensorView& whole, const PixelLine& line, bool merged, int rank) {
  TensorView view = whole;
  const std::array<std::int64_t, 3> place{line.depth, line.row, line.first};
  std::int64_t offset = 0;
  for (int axis = 0; axis + 1 < rank; ++axis) {
    const int own = axis_of(view, rank, axis);
    if (own < 0) continue;
    const bool is_column = axis + 2 == rank;
    const bool varies = whole.shape[own] != 1 || (is_column && merged && has_pixels(whole, rank));
    if (!varies) continue;
    const std::int64_t index = axis == 0              ? line.sample
                               : merged && !is_column ? 0
                                                      : place[static_cast<std::size_t>(axis + 4 - rank)];
    offset += index * view.strides[own];
    view.shape[own] = is_column ? line.count : 1;
    if (is_column) view.strides[own] *= line.step;
  }
  view.data = view.as<std::byte>() + offset * byte_size(view.dtype);
  return view;
}

/// Whether the only node before the anchor moves channels from the front to the back.
bool puts_channels_last(const Region& region) {
  if (region.anchor != 1 || region.nodes[0].problem.op->kind != OpKind::transpose) return false;
  const Ints& permutation = region.nodes[0].problem.attributes.integers("permutation");
  const auto rank = static_cast<std::int64_t>(permutation.size());
  if (rank < 3 || permutation.front() != 0 || permutation.back() != 1) return false;
  for (std::size_t axis = 1; axis + 1 < permutation.size(); ++axis)
    if (permutation[axis] != static_cast<std::int64_t>(axis) + 1) return false;
  return true;
}

}  // namespace

Decline ConvPrologue::declines(const Region& region) {
  if (region.anchor == 0) return std::nullopt;
  const auto count = static_cast<std::size_t>(region.anchor);
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} before conv: {}", region.nodes[count - 1].problem.op->name, why);
  };
  const RegionNode& anchor = region.nodes[count];
  if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1)
    return fails("the convolution reads it as more than x");
  if (puts_channels_last(region)) {
    if (region.problem().input(0).dtype != DType::f32)
      return fails("images of other types than float32 are copied by pixels");
    return region.results.front().node == 0 || region.results.back().node == 0 ? fails("others read it, too")
                                                                               : std::nullopt;
  }
  const ConvGeometry g = conv_geometry(anchor.problem);
  if (g.taps() != 1) return fails("windows of several pixels would compute it again for each");
  if (g.before != ConvGeometry::Axes{} || g.after != ConvGeometry::Axes{})
    return fails("the padding around x does not go through it");
  if (anchor.problem.input(0).dtype != DType::f32) return fails("it is copied as float32");
  for (std::size_t n = 0; n < count; ++n)
    if (!StepBuilder::knows(region.nodes[n].problem.op->kind)) return fails("only elementwise operators can precede");
  const PartBeforeAnchor part = part_before_anchor(region);
  if (!part.results.empty()) return fails("others read it, too");
  if (part.operands.size() > most_operands) return fails("too many tensors");
  for (std::size_t i = 0; i < part.region.operands.size(); ++i)
    if (part.region.has(i) &&
        (goes_by_token(part.region, i) || part.region.operand_type(i).rank() > anchor.problem.input(0).rank()))
      return fails("an operand has other axes");
  if (!kernel_without_workspace(part.region)) return fails("no kernel computes it");
  return std::nullopt;
}

ConvPrologue::ConvPrologue(const Region& region) {
  if (region.anchor == 0) return;
  PartBeforeAnchor part = part_before_anchor(region);
  transposes = puts_channels_last(region);
  if (!transposes) launch = kernel_without_workspace(part.region)->bind(part.region);
  operands = std::move(part.operands);
}

TensorView ConvPrologue::transposed(const LaunchArgs& args) const {
  TensorView view = args.inputs[*operands.front()];
  const std::int64_t channels = view.shape[1], step = view.strides[1];
  const int last = view.shape.rank() - 1;
  for (int axis = 1; axis < last; ++axis)
    view.shape[axis] = view.shape[axis + 1], view.strides[axis] = view.strides[axis + 1];
  view.shape[last] = channels, view.strides[last] = step;
  return view;
}

TensorView ConvPrologue::transposed(const LaunchArgs& args, std::byte* memory) const {
  const TensorView from = transposed(args), to(memory, from.dtype, from.shape);
  strided_copy(from.shape, from.data, from.strides, to.data, to.strides, size_of(from.dtype), *args.pool);
  return to;
}

std::int64_t ConvPrologue::transposed_bytes(const Region& region) const {
  return transposes ? round_up(region.problem().input(0).bytes().value(region.problem().maximum), 64) : 0;
}

ConvPrologueRun::ConvPrologueRun(const ConvPrologue& prologue, const LaunchArgs& args) : prologue_(prologue) {
  Shape shape;
  for (std::size_t i = 0; i < prologue.operands.size(); ++i) {
    const auto& operand = prologue.operands[i];
    if (!operand || !args.has(*operand)) continue;
    operands_[i] = args.inputs[*operand];
    while (shape.rank() < operands_[i].shape.rank()) {
      Shape longer{1};
      for (const std::int64_t dim : shape) longer.push_back(dim);
      shape = longer;
    }
    for (int axis = 0; axis < operands_[i].shape.rank(); ++axis) {
      std::int64_t& dim = shape[axis + shape.rank() - operands_[i].shape.rank()];
      if (dim == 1) dim = operands_[i].shape[axis];
    }
  }
  x_ = TensorView(nullptr, DType::f32, shape);
  for (std::size_t i = 0; i < prologue.operands.size(); ++i)
    if (operands_[i].present) merges_ = merges_ && is_one_line(operands_[i], shape);
}

void ConvPrologueRun::operator()(const PixelLine& line, bool merged, float* to, std::int64_t pixel_step) const {
  static ThreadPool own_thread(1);
  const int rank = x_.shape.rank();
  std::array<TensorView, ConvPrologue::most_operands> inputs;
  for (std::size_t i = 0; i < prologue_.operands.size(); ++i)
    if (operands_[i].present) inputs[i] = part_of(operands_[i], line, merged, rank);
  Shape shape = x_.shape, strides = x_.shape;
  for (int axis = 0; axis < rank; ++axis) {
    shape[axis] = axis + 1 == rank ? x_.shape.back() : axis + 2 == rank ? line.count : 1;
    strides[axis] = axis + 1 == rank ? 1 : axis + 2 == rank ? pixel_step : line.count * pixel_step;
  }
  const TensorView made(to, DType::f32, shape, strides);
  prologue_.launch({.inputs = {inputs.data(), prologue_.operands.size()}, .outputs = {&made, 1}, .pool = &own_thread});
}

}  // namespace cermet::cpu
