#include "kernel/cuda/gemm/product.hpp"

#include "base/checked.hpp"
#include "op/product_operands.hpp"

namespace cermet::cuda {
namespace {

using Extent = TileProgram::Extent;

}  // namespace

Decline Product::declines_after(const Region& region, ProductLoops loops) {
  const TileProgramOrReason made = product_epilogue(region, loops);
  if (made.reason) return made.reason;
  const auto anchor = static_cast<std::size_t>(region.anchor);
  for (std::size_t n = anchor + 1; n < region.nodes.size(); ++n) {
    const auto reads = [&](const RegionInput& i) { return i.is_inside() && i.index >= region.anchor; };
    if (std::ranges::none_of(region.nodes[n].inputs, reads))
      return fmt::format("{} does not follow the product", region.nodes[n].problem.op->name);
  }
  if (const std::size_t count = made.program.results.size(); count == 0 || count > loops.results)
    return fmt::format("{} results leave after the product, and {} can", count, loops.results == 1 ? "one" : "two");
  if (made.program.extras.size() > epilogue::most_extras)
    return fmt::format("{} operands are read after the product, and {} can be", made.program.extras.size(),
                       epilogue::most_extras);
  return std::nullopt;
}

Decline Product::declines(const Region& region, ProductLoops loops) {
  const DType x = region.problem().input(0).dtype;
  if (region.problem().op->kind == OpKind::matmul && !dtypes::real.contains(x))
    return fmt::format("a is {}, which is not multiplied as float32", name_of(x));
  if (region.anchor != 0) return "computes nothing before the product";
  return declines_after(region, loops);
}

Product::Product(const Region& region, ProductLoops loops)
    : grouped_(region.problem().op->kind == OpKind::grouped_linear) {
  const Problem& p = region.problem();
  if (p.op->kind == OpKind::matmul) matrix_row_ = p.attributes.flag("transpose_a") ? 1 : 2;
  const ProductOperands schema = product_operands(p.op->kind);
  const auto has = [&](std::size_t i) { return i != ProductOperands::none && p.has(i); };
  const auto dims = [&](std::size_t i) -> const Dims& { return p.input(i).dims; };
  if (has(schema.x_scale))
    left = *row_scale_grid(dims(schema.x_scale), {dims(0).begin(), dims(0).end() - 1}, dims(0).back());
  if (has(schema.w_scale))
    right = grouped_ ? *stacked_scale_grid(dims(schema.w_scale), dims(1))
                     : *column_scale_grid(dims(schema.w_scale), dims(1)[0], dims(1)[1]);
  blocked = std::max(left.blocks, right.blocks) > 1;
  column_sums = has(schema.zero_point);
  gated = loops.gated && gate_after(region);

  const auto operand_index = [&](std::size_t i) {
    const auto operand = has(i) ? region.operand_of(i) : std::nullopt;
    return operand ? static_cast<int>(*operand) : -1;
  };
  at = {operand_index(0),
        operand_index(1),
        operand_index(schema.w_up),
        operand_index(schema.offsets),
        blocked ? operand_index(schema.x_scale) : -1,
        blocked ? operand_index(schema.w_scale) : -1};
  const int w_scale = operand_index(schema.w_scale), bias = operand_index(schema.bias);

  program_ = product_epilogue(region, loops).program;
  y = program_.results.front().result;
  out = program_.results.front().dtype;
  if (program_.results.size() > 1) second = {program_.results.back().result, program_.results.back().dtype};
  for (const TileProgram::Extra& extra : program_.extras) {
    const bool is_scale = static_cast<int>(extra.operand) == w_scale,
               of_groups = grouped_ && (is_scale || static_cast<int>(extra.operand) == bias);
    EpilogueExtra own{extra.dtype, extra.extent, 1};
    // The scale of an expert, and those of blocks that are as long as the reduction.
    if (is_scale && right.group == 0) own.extent = Extent::scalar;
    else if (is_scale) own.columns = static_cast<int>(right.group);
    extras_.push_back(own);
    operands_.push_back({extra.operand, is_scale, of_groups, extra.first});
  }
}

const TensorView* Product::given(const LaunchArgs& args, int place) const {
  return place >= 0 && args.has(static_cast<std::size_t>(place)) ? &args.inputs[static_cast<std::size_t>(place)]
                                                                 : nullptr;
}

TensorView Product::second_weight(const LaunchArgs& args) const {
  if (const TensorView* const up = given(args, at.w_up)) return *up;
  if (!gated) return {};
  TensorView half = args.inputs[static_cast<std::size_t>(at.w)];
  const int rows = half.shape.rank() - 2;
  const std::int64_t first = half.shape[rows] / 2 * half.strides[rows] * byte_size(half.dtype);
  half.data = half.as<std::byte>() + first;
  return half;
}

AxisSteps Product::extra_steps(const LaunchArgs& args, std::size_t i, int leads) const {
  const TensorView& view = extra(args, i);
  switch (extras_[i].extent) {
    case Extent::element: return steps_along(view, leads, 1);
    case Extent::row: return steps_along(view, leads, view.shape.rank() - leads);
    case Extent::scalar:
    case Extent::column: return {};
  }
  assertion_failed("an extent", __FILE_NAME__, __LINE__);
}

ProductRows Product::rows(const LaunchArgs& args, const TensorView& result) const {
  const TensorView &x = *given(args, at.x), &w = *given(args, at.w), *const scale = given(args, at.x_scale);
  const int leads = result.shape.rank() - 1;
  ProductRows rows;
  rows.steps[ProductRows::Y] = steps_along(result, leads, 1);
  if (second) rows.steps[ProductRows::SECOND] = steps_along(args.outputs[second->y], leads, 1);
  if (scale != nullptr && left.group != 0)
    rows.steps[ProductRows::SCALE] = steps_along(*scale, leads, scale->shape.rank() - leads);
  for (std::size_t i = 0; i < extras_.size(); ++i) rows.steps[ProductRows::EXTRA + i] = extra_steps(args, i, leads);
  if (matrix_row_ == 0) {
    rows.steps[ProductRows::X] = steps_along(x, leads, 1);
  } else {
    rows.steps[ProductRows::X] = steps_along(x, leads - 1, 2);
    rows.steps[ProductRows::X][static_cast<std::size_t>(leads - 1)] = x.strides[x.shape.rank() - matrix_row_];
    rows.steps[ProductRows::W] = steps_along(w, leads - 1, 2);
  }
  rows.axes = merge_axes(result.shape, leads, rows.steps, ProductRows::W);
  return rows;
}

epilogue::Operand Product::operand(const LaunchArgs& args, std::size_t i) const {
  const TensorView& view = extra(args, i);
  const int first = operands_[i].grouped ? 1 : 0, axis = operands_[i].is_scale ? first : view.shape.rank() - 1;
  epilogue::Operand operand{view.data, 0, 0, 0};
  if (extras_[i].extent == Extent::column) operand.column = view.shape[axis] > 1 ? view.strides[axis] : 1;
  if (operands_[i].grouped) operand.group = view.strides[0];
  operand.data =
      static_cast<const std::byte*>(operand.data) + operands_[i].shift * operand.column * byte_size(view.dtype);
  return operand;
}

}  // namespace cermet::cuda
