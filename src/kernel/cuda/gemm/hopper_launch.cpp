// Launches of the Hopper GEMM: which operands suit bulk copies, their tensor maps and parameters.
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/gemm/parts.hpp"
#include "kernel/cuda/gemm/column_sums.hpp"
#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {
namespace {

bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace

struct HopperProduct::View {
  std::int64_t m = 0, batches = 1;
  std::int64_t x_stride = 0, x_batch = 0, y_stride = 0, y_batch = 0, second_stride = 0, second_batch = 0, w_stride = 0,
               w_batch = 0,
               scale_stride = 0;  ///< elements
  std::array<epilogue::Operand, epilogue::most_extras> extra{};
};

std::optional<HopperProduct::View> HopperProduct::view_of(const LaunchArgs& args) const {
  const TensorView& w = this->w(args);
  const ProductRows rows = product_.rows(args, args.outputs[product_.y]);
  if (rows.axes.rank > (config_.batched ? 2 : 1)) return std::nullopt;
  View view;
  view.m = rows.axes.m();
  view.batches = rows.axes.batches();
  // A single row has no step, but a copy wants one.
  view.x_stride = view.m > 1 ? rows.row(ProductRows::X) : k_;
  view.y_stride = rows.row(ProductRows::Y);
  view.second_stride = rows.row(ProductRows::SECOND);
  view.scale_stride = rows.row(ProductRows::SCALE);
  view.w_stride = n_ > 1 ? w.strides[w.shape.rank() - 2] : k_;
  if (view.x_stride == 0 || view.w_stride == 0) return std::nullopt;  // one row, repeated
  if (rows.axes.rank == 2) {
    view.x_batch = rows.steps[ProductRows::X][0], view.y_batch = rows.steps[ProductRows::Y][0];
    view.second_batch = rows.steps[ProductRows::SECOND][0], view.w_batch = rows.steps[ProductRows::W][0];
  }
  if (config_.grouped) view.w_batch = w.shape[0] > 1 ? w.strides[0] : 0;
  for (std::size_t i = 0; i < product_.extras().size(); ++i) {
    view.extra[i] = product_.operand(args, i);
    view.extra[i].row = rows.row(ProductRows::EXTRA + i);
    if (rows.axes.rank == 2) view.extra[i].group = rows.steps[ProductRows::EXTRA + i][0];
  }
  return fits(args, view) ? std::optional(view) : std::nullopt;
}

/// Whether addresses and strides are what copies of 16 bytes need.
bool HopperProduct::fits(const LaunchArgs& args, const View& view) const {
  const TensorView &x = this->x(args), &w = this->w(args), &y = args.outputs[product_.y];
  const std::int64_t x_row = view.x_stride * byte_size(x_type_), w_row = view.w_stride * byte_size(config_.b),
                     out = byte_size(product_.out);
  bool fits = aligned(x.data) && aligned(w.data) && aligned(y.data) && x_row % 16 == 0 && w_row % 16 == 0 &&
              view.y_stride * out % 16 == 0 && view.y_batch * out % 16 == 0 && view.x_batch % view.x_stride == 0 &&
              view.w_batch % view.w_stride == 0;
  if (product_.second) {
    const std::int64_t bytes = byte_size(product_.second->out);
    fits = fits && aligned(args.outputs[product_.second->y].data) && view.second_stride * bytes % 16 == 0 &&
           view.second_batch * bytes % 16 == 0;
  }
  if (const TensorView up = product_.second_weight(args); up.present) {
    const std::int64_t row = up.strides[up.shape.rank() - 2];
    fits = fits && aligned(up.data) && (n_ == 1 || row != 0) && row * byte_size(config_.b) % 16 == 0;
  }
  for (std::size_t i = 0; i < product_.extras().size(); ++i) {
    const EpilogueExtra& extra = product_.extras()[i];
    const epilogue::Operand& operand = view.extra[i];
    const std::int64_t size = byte_size(extra.dtype);
    const bool element = extra.extent == TileProgram::Extent::element;
    if (!element && !extra.is_side_by_side()) continue;
    fits = fits && aligned(operand.data) && operand.row * size % 16 == 0 && (element || operand.column == 1);
    fits = fits && (operand.group * size % 16 == 0 || (config_.grouped && w.shape[0] < 2));
  }
  return fits;
}

void HopperProduct::set_maps(const LaunchArgs& args, const View& view, const HopperTile& tile,
                             gemm::HopperParams& p) const {
  const TensorView &x = this->x(args), &w = this->w(args), &y = args.outputs[product_.y];
  const auto map_of = [&](void* data, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                          int box_rows) {
    const auto width = static_cast<std::uint32_t>(gemm::HopperShape::row_bytes / byte_size(dtype));
    return std::bit_cast<TensorMapBytes>(
        args.queue->device().tensor_map({data, dtype, rows, columns, stride, static_cast<std::uint32_t>(box_rows),
                                         width, gemm::HopperShape::row_bytes}));
  };
  const std::int64_t x_rows = (view.batches - 1) * (view.x_batch / view.x_stride) + view.m;
  if (is_split())
    p.a = map_of(args.workspace, DType::bf16, 3 * view.m, k_, k_,
                 has_few_rows(tile) ? gemm::hopper_few_rows : tile.block_m);
  else
    p.a = map_of(x.data, x_type_, x_rows, k_, view.x_stride, has_few_rows(tile) ? gemm::hopper_few_rows : tile.block_m);
  const std::int64_t w_step = view.w_batch / view.w_stride;
  const std::int64_t w_rows = (p.groups - 1) * w_step + n_;
  p.b = map_of(w.data, config_.b, w_rows, k_, view.w_stride, tile.block_n);
  if (const TensorView up = product_.second_weight(args); up.present)
    p.b_up = map_of(up.data, config_.b, w_rows, k_, n_ > 1 ? up.strides[up.shape.rank() - 2] : k_, tile.block_n);
  if (work_.ungrouped) p.y_map = map_of(y.data, product_.out, view.m, n_, view.y_stride != 0 ? view.y_stride : n_, 16);
}

std::int64_t HopperProduct::tiles_of_groups(const View& view, const HopperTile& tile) const {
  return div_up(view.m, tile.block_m) + work_.groups + (config_.unweighted ? 1 : 0);
}

// Of as many rows for each group as this 2 % of the groups have none where they are chosen evenly; of fewer, blocks
// that met groups without rows would wait for others. Where there are rows without a weight, half of them are taken to
// be of that kind.
bool HopperProduct::takes_by_number(const View& view, const HopperTile& tile) const {
  constexpr std::int64_t rows_without_holes = 4;
  return has_few_rows(tile) && view.m >= (config_.unweighted ? 2 : 1) * rows_without_holes * work_.groups;
}

bool HopperProduct::makes_unweighted_rows(const LaunchArgs& args) const { return config_.unweighted && view_of(args); }

gemm::HopperParams HopperProduct::params(const LaunchArgs& args, const View& view, const HopperTile& tile) const {
  gemm::HopperParams p{};
  const std::int64_t groups = config_.grouped ? w(args).shape[0] : view.batches;
  p.groups = narrow(groups, "product", "groups");
  set_maps(args, view, tile, p);
  p.y = args.outputs[product_.y].data;
  p.y_stride = view.y_stride;
  p.y_group = view.y_batch;
  if (product_.second) p.second = args.outputs[product_.second->y].data;
  p.second_stride = view.second_stride;
  p.second_group = view.second_batch;
  p.m = narrow(view.m, "product", "rows");
  p.a_group = narrow(view.x_batch / view.x_stride, "product", "rows of a matrix");
  p.b_group = narrow(view.w_batch / view.w_stride, "product", "rows of a weight");
  p.a_part = p.m;
  if (const TensorView* scale = product_.given(args, product_.at.x_scale)) {
    p.row_scale = scale->as<const float>();
    p.row_scale_step = narrow(view.scale_stride, "product", "elements between scales");
    if (product_.left.blocks > 1)
      p.row_scale_block = narrow(scale->strides.back(), "product", "elements between scales");
  }
  if (const TensorView* scale = product_.given(args, product_.at.w_scale)) {
    p.column_scale = scale->as<const float>();
    if (config_.grouped) p.column_scale_group = scale->strides[0];
    p.column_scale_step = product_.right.group == 0
                              ? 0
                              : narrow(scale->strides[config_.grouped ? 1 : 0], "product", "elements between scales");
    if (product_.right.blocks > 1)
      p.column_scale_block = narrow(scale->strides.back(), "product", "elements between scales");
  }
  if (product_.column_sums) p.column_sums = reinterpret_cast<const std::int32_t*>(args.workspace);
  if (const TensorView* offsets = product_.given(args, product_.at.offsets)) p.offsets = offsets->data;
  std::ranges::copy(view.extra, p.extra);
  const std::int64_t tiles_m =
      config_.grouped ? tiles_of_groups(view, tile) : div_up(view.m, tile.block_m) * view.batches;
  p.items = narrow(tiles_m * div_up(n_, tile.block_n), "product", "tiles");
  p.by_number = takes_by_number(view, tile) ? 1 : 0;
  return p;
}

void HopperProduct::launch(const LaunchArgs& args) const {
  if (args.outputs[product_.y].elements() == 0) return;
  const std::optional<View> view = view_of(args);
  const std::size_t general = tiles_.size() + (is_split() ? 1 : 0);
  if (!view) return general_.launch(args, general);
  if (is_split()) {
    const gemm::PartsParams parts{x(args).data, args.workspace, view->x_stride, narrow(view->m, "product", "rows"),
                                  narrow(k_, "product", "terms of a sum")};
    args.queue->run(tiles_.size(), div_up(view->m * k_, gemm::parts_item), parts);
    args.queue->declare({byte_range(x(args))}, {this->parts(args, *view)});
  }
  general_.launch_sums(args, general);
  run_tiles(args, *view, nullptr);
}

bool HopperProduct::launch_windows(const LaunchArgs& args, const HopperWindows& windows) const {
  const std::optional<View> view = view_of(args);
  if (!view) return false;
  run_tiles(args, *view, &windows);
  return true;
}

bool HopperProduct::launch_gated(const LaunchArgs& args, const HopperGateRows& gate) const {
  const std::optional<View> view = view_of(args);
  if (!view || !aligned(gate.memory.begin) || gate.sample * byte_size(x_type_) % 16 != 0) return false;
  run_tiles(args, *view, nullptr, &gate);
  return true;
}

void HopperProduct::set_windows(const LaunchArgs& args, const HopperWindows& windows, const HopperTile& tile,
                                gemm::HopperParams& p) const {
  WindowMapShape shape = windows.map;
  shape.box_pixels = static_cast<std::uint32_t>(tile.block_m);
  shape.box_channels = static_cast<std::uint32_t>(gemm::HopperShape::row_bytes / byte_size(x_type_));
  p.a = std::bit_cast<TensorMapBytes>(window_map(args.queue->device(), shape));
  p.window_rows = static_cast<std::int32_t>(windows.rows);
  p.window_columns = static_cast<std::int32_t>(windows.columns);
}

void HopperProduct::run_tiles(const LaunchArgs& args, const View& view, const HopperWindows* windows,
                              const HopperGateRows* gate) const {
  HopperWork work = work_;
  work.groups = config_.grouped ? w(args).shape[0] : view.batches;
  const HopperTile tile = choose(tiles_, work, view.m);
  const auto program = static_cast<std::size_t>(std::find(tiles_.begin(), tiles_.end(), tile) - tiles_.begin());
  gemm::HopperParams p = params(args, view, tile);
  if (windows) set_windows(args, *windows, tile, p);
  if (gate)
    p.gate = gate->memory.begin, p.gate_sample = gate->sample,
    p.gate_rows = narrow(gate->rows, "product", "rows of a sample");
  args.queue->run(program, p.items, p, args.queue->resident_blocks(program));
  if (!args.queue->wants_ranges()) return;
  const bool fetches = preloads(tile) && (!has_few_rows(tile) || takes_by_number(view, tile));
  OperandUse use;
  if (fetches) use.early = {&w(args), product_.given(args, product_.at.w_up)};
  if (windows || is_split()) use.unread = &x(args);
  if (windows) use.also_reads = windows->image;
  else if (is_split()) use.also_reads = parts(args, view);
  else if (gate) use.also_reads = gate->memory;
  else if (product_.column_sums) use.also_reads = {args.workspace, column_sums_bytes(n_)};
  declare_operands(args, use);
}

ByteRange HopperProduct::parts(const LaunchArgs& args, const View& view) const {
  return {args.workspace, 3 * view.m * k_ * byte_size(DType::bf16)};
}

}  // namespace cermet::cuda
