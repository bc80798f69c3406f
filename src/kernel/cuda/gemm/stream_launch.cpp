// Launches of stream.hpp.
#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/gemm/product_items.hpp"
#include "kernel/cuda/gemm/stream.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {

struct StreamProduct::View {
  std::int64_t m = 0, x_stride = 0, y_stride = 0, also_stride = 0, w_stride = 0, up_stride = 0;  ///< elements
  std::array<epilogue::Operand, epilogue::most_extras> extra{};
};

std::optional<StreamProduct::View> StreamProduct::view_of(const LaunchArgs& args) const {
  const TensorView &x = this->x(args), &w = this->w(args), y = this->y(args);
  const int leads = y.shape.rank() - 1;
  enum { X, Y, ALSO, NONE, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  std::array<AxisSteps, COUNT> steps{};
  steps[X] = steps_along(x, leads, 1);
  steps[Y] = steps_along(y, leads, 1);
  if (product_.also) steps[ALSO] = steps_along(args.outputs[product_.also->y], leads, 1);
  for (std::size_t i = 0; i < product_.extras().size(); ++i) steps[EXTRA + i] = product_.extra_steps(args, i, leads);
  const RowAxes axes = merge_axes(y.shape, leads, steps, NONE);
  if (axes.rank > 1) return std::nullopt;
  View view;
  view.m = axes.m();
  // A single row has no step, but a copy wants one.
  view.x_stride = view.m > 1 ? steps[X][0] : k_;
  view.y_stride = steps[Y][0];
  view.also_stride = steps[ALSO][0];
  view.w_stride = n_ > 1 ? w.strides[0] : k_;
  if (const TensorView up = product_.second_weight(args); up.present) view.up_stride = n_ > 1 ? up.strides[0] : k_;
  for (std::size_t i = 0; i < product_.extras().size(); ++i) {
    view.extra[i] = product_.operand(args, i);
    view.extra[i].row = steps[EXTRA + i][0];
  }
  return fits(args, view) ? std::optional(view) : std::nullopt;
}

/// Whether addresses and strides are what copies of 16 bytes need.
bool StreamProduct::fits(const LaunchArgs& args, const View& view) const {
  const auto suits = [](const TensorView& view, std::int64_t stride) {
    const std::int64_t bytes = stride * static_cast<std::int64_t>(size_of(view.dtype));
    return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && bytes % 16 == 0;
  };
  const TensorView up = product_.second_weight(args);
  return view.x_stride != 0 && view.w_stride != 0 && suits(x(args), view.x_stride) && suits(w(args), view.w_stride) &&
         (heads_ || suits(args.outputs[product_.y], view.y_stride)) &&
         (!up.present || (view.up_stride != 0 && suits(up, view.up_stride))) &&
         (!product_.also || suits(args.outputs[product_.also->y], view.also_stride));
}

gemm::StreamRotatedParams StreamProduct::params(const LaunchArgs& args, const View& view,
                                                const gemm::StreamShape& shape) const {
  const auto map_of = [&](const TensorView& operand, std::int64_t rows, std::int64_t stride, std::int64_t box_rows) {
    const auto width = static_cast<std::uint32_t>(gemm::StreamShape::slice / size_of(operand.dtype));
    return std::bit_cast<TensorMapBytes>(
        args.queue->device().tensor_map({operand.data, operand.dtype, rows, k_, stride,
                                         static_cast<std::uint32_t>(box_rows), width, gemm::StreamShape::slice}));
  };
  gemm::StreamRotatedParams p{};
  p.w = map_of(w(args), n_, view.w_stride, shape.pairs ? shape.rows / 2 : shape.rows);
  if (const TensorView up = product_.second_weight(args); up.present)
    p.w_up = map_of(up, n_, view.up_stride, shape.rows);
  p.x = map_of(x(args), view.m, view.x_stride, view.m);
  if (heads_) heads_->set(args, p);
  p.y = y(args).data;
  p.y_stride = view.y_stride;
  if (product_.also) p.also = args.outputs[product_.also->y].data;
  p.also_stride = view.also_stride;
  p.m = narrow(view.m, "product", "rows");
  std::ranges::copy(view.extra, p.extra);
  return p;
}

void StreamProduct::launch(const LaunchArgs& args) const {
  if (y(args).elements() == 0) return;
  const std::optional<View> view = view_of(args);
  if (!view) return gemv_ ? gemv_->launch(args, shapes_.size()) : general_->launch(args, shapes_.size());
  const auto found =
      std::ranges::find_if(shapes_, [&](const gemm::StreamShape& shape) { return view->m <= shape.tokens; });
  const auto program = static_cast<std::size_t>(found - shapes_.begin());
  const gemm::StreamShape& shape = shapes_[program];
  const gemm::StreamRotatedParams p = params(args, *view, shape);
  if (gemv_) args.queue->run(program, items(shape), p, multiprocessors_);
  else args.queue->run(program, items(shape), static_cast<const gemm::StreamParams&>(p), multiprocessors_);
  declare(args, *view, shape);
}

void StreamProduct::declare(const LaunchArgs& args, const View& view, const gemm::StreamShape& shape) const {
  if (!args.queue->wants_ranges()) return;
  const ProductTiles tiles{.grid = item_grid(1, 1, 1, this->items(shape)),
                           .m = view.m,
                           .n = n_,
                           .columns = tiles_along(grid_columns, shape.rows)};
  ProductItems items(product_, args, tiles);
  items.read(items.rows(x(args), {}, view.x_stride, k_, 1));
  if (heads_) {
    heads_->touch(args, this->items(shape), w(args), view.w_stride, constant_, items);
    for (std::size_t i = 0; i < product_.extras().size(); ++i) items.read(&product_.extra(args, i));
    return items.declare();
  }
  items.read(early(items.weight(w(args), {}, view.w_stride, k_, 1, product_.gated ? 2 : 1), constant_));
  if (const TensorView* up = product_.given(args, product_.at.w_up))
    items.read(early(items.weight(*up, {}, view.up_stride, k_, 1), constant_));
  for (std::size_t i = 0; i < product_.extras().size(); ++i) items.read_extra(i, view.extra[i]);
  items.write(items.result({}, view.y_stride));
  if (product_.also) items.write(items.second_result({}, view.also_stride));
  items.declare();
}

}  // namespace cermet::cuda
