#include "kernel/cuda/gemm/hopper.hpp"

#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/device/gemm/parts.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// The tensor cores add fp8 products with about 14 significant bits, so sums move to float32 registers after every 128 or 256 reduction steps. Measured on
/// normal data, the largest error is then 0.8 of the bound of float32 sums at K = 1024 with 128 steps, 0.6 at 2048 with 256, and falls as K grows.
constexpr std::int64_t shortest_fp8 = 1024;
int fp8_stages(std::int64_t k) { return k < 2048 ? 1 : 2; }

std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

bool is_fp8(DType dtype) { return dtypes::fp8.contains(dtype); }

bool known(const Dim& dim) { return dim.is_constant(); }

/// The 32-bit rows that a bulk copy counts.
std::int32_t narrow(std::int64_t value) {
  require(value >= 0 && value < (std::int64_t{1} << 31), "product: expected fewer than 2^31 rows and elements between rows, found {}", value);
  return static_cast<std::int32_t>(value);
}

bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

Decline declines_types(const Problem& p) {
  const DType a = p.input(0).dtype, b = p.input(1).dtype, out = p.outputs[0].dtype;
  const bool splits = a == DType::f32 && b == DType::bf16, same = a == b && (a == DType::bf16 || a == DType::f16 || a == DType::i8);
  if (!splits && !same && !(is_fp8(a) && is_fp8(b))) return fmt::format("no instruction multiplies {} with {}", name_of(a), name_of(b));
  if (!dtypes::real.contains(out)) return fmt::format("the result is {}", name_of(out));
  return std::nullopt;
}

/// Scales of both operands.
struct ScaleGrids {
  ScaleGrid left, right;
  bool has_left = false, has_right = false;

  explicit ScaleGrids(const Problem& p) {
    const bool grouped = p.op->kind == OpKind::grouped_linear;
    if (!grouped && p.op->kind != OpKind::scaled_mm) return;
    const std::size_t at = grouped ? 4 : 2;
    const Dims &x = p.input(0).dims, &w = p.input(1).dims;
    has_left = p.has(at);
    has_right = p.has(at + 1);
    if (has_left) left = *row_scale_grid(p.input(at).dims, {x.begin(), x.end() - 1}, x.back());
    if (has_right) right = grouped ? *stacked_scale_grid(p.input(at + 1).dims, w) : *column_scale_grid(p.input(at + 1).dims, w[0], w[1]);
  }
  bool blocked() const { return std::max(left.blocks, right.blocks) > 1; }
};

Decline declines_scaled(const Problem& p) {
  for (const std::size_t i : {5, 6, 7})
    if (p.has(i)) return fmt::format("{} is given", p.op->inputs[i].name);
  if (p.has(4) && p.input(4).dtype == DType::i32) return "bias is i32";
  return std::nullopt;
}

}  // namespace

Decline HopperProduct::declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline reason = declines_types(p)) return reason;
  const OpKind op = p.op->kind;
  if (op == OpKind::matmul && (p.attributes.flag("transpose_a") || !p.attributes.flag("transpose_b")))
    return "an operand is not contiguous along the reduction";
  if (op == OpKind::matmul && p.input(0).dtype == DType::f32) return "a is f32";
  if (op == OpKind::scaled_mm)
    if (Decline reason = declines_scaled(p)) return reason;
  const ScaleGrids grids(p);
  if (grids.blocked() && grids.has_right && grids.right.blocks == 1) return "scales of rows are of blocks and those of columns are not";
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!known(n) || !known(k)) return "N or K is not known beforehand";
  const std::int64_t columns = n.constant(), length = k.constant();
  if (columns == 0 || length == 0) return "N or K is 0";
  const DType b = p.input(1).dtype;
  if (length * bytes_of(b) % 16 != 0) return fmt::format("rows of {} {} do not have whole 16 bytes", length, name_of(b));
  if (columns * bytes_of(p.outputs[0].dtype) % 16 != 0) return fmt::format("rows of {} results do not have whole 16 bytes", columns);
  if (is_fp8(b) && length < shortest_fp8) return fmt::format("K is below {}: the tensor cores' sums of fp8 would show", shortest_fp8);
  if (op == OpKind::grouped_linear && !known(p.input(1).dims[0])) return "the number of groups is not known beforehand";
  return std::nullopt;
}

HopperProduct::HopperProduct(const Problem& p, const Config& config)
    : op_(p.op->kind), a_(p.input(0).dtype), b_(p.input(1).dtype), out_(p.outputs[0].dtype), general_(p, GeneralProduct::Programs::small) {
  n_ = p.outputs[0].dims.back().constant();
  k_ = p.input(0).dims.back().constant();
  constant_b_ = p.is_constant(1);
  dual_ = op_ == OpKind::dual_linear;
  if (dual_) activation_ = p.attributes.text("activation");
  const std::size_t bias = op_ == OpKind::scaled_mm ? 4 : op_ == OpKind::linear ? 2 : 3;
  bias_ = op_ != OpKind::matmul && p.has(bias);
  if (bias_) bias_type_ = p.input(bias).dtype;
  bias_up_ = dual_ && p.has(4);
  if (bias_up_) bias_up_type_ = p.input(4).dtype;
  const bool grouped = op_ == OpKind::grouped_linear;
  if (grouped) offsets_ = p.input(2).dtype;
  const ScaleGrids grids(p);
  row_scale_ = grids.has_left;
  column_scale_ = grids.has_right;
  left_ = grids.left;
  right_ = grids.right;
  blocked_ = grids.blocked();
  split_ = a_ == DType::f32;
  std::int64_t rows = max_rows(p, 0);
  if (split_) workspace_bytes_ = 3 * rows * k_ * 2;

  work_.n = n_;
  work_.k_bytes = k_ * bytes_of(b_);
  work_.a_parts = split_ ? 3 : 1;
  work_.b_parts = dual_ ? 2 : 1;
  work_.out_bytes = static_cast<int>(bytes_of(out_));
  work_.vector_bytes = static_cast<int>((column_scale_ && !blocked_ ? 4 : 0) + (bias_ ? bytes_of(bias_type_) : 0) + (bias_up_ ? bytes_of(bias_up_type_) : 0));
  work_.widest = dual_ || split_ || is_fp8(b_) || blocked_ ? 128 : 256;
  work_.offsets = grouped;
  work_.multiprocessors = p.target->multiprocessors;
  work_.operand = b_;
  Target unmeasured = *p.target;  // which programs there are does not depend on who measured, nor do results
  unmeasured.measured = nullptr;
  work_.set_limits(limits_of(&unmeasured));
  if (grouped) work_.groups = p.input(1).dims[0].constant();
  if (op_ == OpKind::matmul) {
    const Dims& b = p.input(1).dims;
    batches_ = !std::all_of(b.begin(), b.end() - 2, [](const Dim& d) { return d == Dim(1); });
    if (batches_) {
      most_batches_ = rows / std::max<std::int64_t>(1, p.size(0, -2));
      rows = p.size(0, -2);
    }
  }
  work_.ungrouped = !grouped && !batches_;
  most_rows_ = rows;
  if (!config.empty()) tiles_ = {{static_cast<int>(config.at("tile_m")), static_cast<int>(config.at("tile_n")), static_cast<int>(config.at("stages"))}};
  else tiles_ = blocked_ ? std::vector<HopperTile>{{128, 128}} : choose_hopper_tiles(work_, rows);
}

Program HopperProduct::program(const HopperTile& tile) const {
  const int stages = hopper_stages(work_, tile);
  const gemm::HopperShape shape{tile.block_m, tile.block_n, work_.a_parts, work_.b_parts, work_.out_bytes, work_.vector_bytes, work_.ungrouped};
  const char* const grouping = op_ == OpKind::grouped_linear ? "offsets" : batches_ ? "batches" : "none";
  std::string config = fmt::format(".a = {}, .b = {}, .out = {}, .n = {}, .k = {}, .block_m = {}, .block_n = {}, .stages = {}",
                                   device_name(b_ == DType::bf16 ? b_ : a_), device_name(b_), device_name(out_), n_, k_, tile.block_m, tile.block_n, stages);
  config += fmt::format(", .a_parts = {}, .dual = {}, .activation = cermet::Activation::{}, .row_scale = {}, .column_scale = {}, .promote = {}, .blocked = {}",
                        work_.a_parts, device_name(dual_), activation_, device_name(row_scale_), device_name(column_scale_), is_fp8(b_) ? fp8_stages(k_) : 0,
                        device_name(blocked_));
  config +=
      fmt::format(", .bias = {}, .bias_up = {}, .bias_type = {}, .bias_up_type = {}, .grouping = cermet::gemm::Grouping::{}, .offsets = {}, .constant_b = {}",
                  device_name(bias_), device_name(bias_up_), device_name(bias_type_), device_name(bias_up_type_), grouping, device_name(offsets_),
                  device_name(constant_b_));
  return {.header = "kernel/cuda/device/gemm/hopper.cuh",
          .task = "cermet::gemm::Hopper<cermet::gemm::HopperConfig{" + config + "}>",
          .threads = shape.threads(),
          .shared_bytes = shape.shared_bytes(stages)};
}

std::vector<Program> HopperProduct::programs() const {
  std::vector<Program> list;
  for (const HopperTile& tile : tiles_) list.push_back(program(tile));
  if (split_) list.push_back({.header = "kernel/cuda/device/gemm/parts.cuh", .task = "cermet::gemm::Parts", .threads = gemm::parts_item / 8});
  for (Program& program : as_fallbacks(general_.programs())) list.push_back(std::move(program));
  return list;
}

struct HopperProduct::View {
  std::int64_t m = 0, batches = 1;
  std::int64_t x_stride = 0, x_batch = 0, y_stride = 0, y_batch = 0, w_stride = 0, w_batch = 0, scale_stride = 0;  ///< elements
};

std::optional<HopperProduct::View> HopperProduct::view_of(const LaunchArgs& args) const {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const int leads = y.shape.rank() - 1, w_rank = w.shape.rank();
  enum { X, Y, SCALE, W, COUNT };
  std::array<AxisSteps, COUNT> steps{};
  steps[Y] = steps_along(y, leads, 1);
  steps[X] = steps_along(x, leads, 1);
  const std::size_t scale_at = op_ == OpKind::grouped_linear ? 4 : 2, column_at = scale_at + 1;
  if (row_scale_ && left_.group != 0) steps[SCALE] = steps_along(args.inputs[scale_at], leads, args.inputs[scale_at].shape.rank() - leads);
  if (op_ == OpKind::matmul) {
    steps[X] = steps_along(x, leads - 1, 2);
    steps[X][static_cast<std::size_t>(leads - 1)] = x.strides[x.shape.rank() - 2];
    steps[W] = steps_along(w, leads - 1, 2);
  }
  const RowAxes axes = merge_axes(y.shape, leads, steps, W);
  if (axes.rank > (batches_ ? 2 : 1)) return std::nullopt;
  const auto last = static_cast<std::size_t>(axes.rank - 1);
  View view;
  view.m = axes.m();
  view.batches = axes.batches();
  // A single row has no step, but a copy wants one.
  view.x_stride = steps[X][last] != 0 ? steps[X][last] : k_;
  view.y_stride = steps[Y][last];
  view.scale_stride = steps[SCALE][last];
  view.w_stride = n_ > 1 ? w.strides[w_rank - 2] : k_;
  if (axes.rank == 2) view.x_batch = steps[X][0], view.y_batch = steps[Y][0], view.w_batch = steps[W][0];
  if (op_ == OpKind::grouped_linear) view.w_batch = w.shape[0] > 1 ? w.strides[0] : 0;
  const std::int64_t x_row = view.x_stride * bytes_of(a_), w_row = view.w_stride * bytes_of(b_), out = bytes_of(out_);
  bool fits = aligned(x.data) && aligned(w.data) && aligned(y.data) && x_row % 16 == 0 && w_row % 16 == 0 && view.y_stride * out % 16 == 0 &&
              view.y_batch * out % 16 == 0 && view.x_batch % view.x_stride == 0 && view.w_batch % view.w_stride == 0;
  if (dual_) fits = fits && aligned(args.inputs[2].data) && args.inputs[2].strides[0] * bytes_of(b_) % 16 == 0;
  const auto vectors = [&](std::size_t i, bool stacked) {
    const TensorView& v = args.inputs[i];
    return aligned(v.data) && (!stacked || v.shape[0] < 2 || v.strides[0] * bytes_of(v.dtype) % 16 == 0);
  };
  const bool grouped = op_ == OpKind::grouped_linear;
  if (bias_) fits = fits && vectors(op_ == OpKind::scaled_mm ? 4 : op_ == OpKind::linear ? 2 : 3, grouped);
  if (bias_up_) fits = fits && vectors(4, false);
  if (column_scale_ && right_.group == 1)
    fits = fits && vectors(column_at, grouped) &&
           (args.inputs[column_at].shape.rank() == (grouped ? 2 : 1) || args.inputs[column_at].strides[grouped ? 1 : 0] == 1);
  return fits ? std::optional(view) : std::nullopt;
}

HopperTile HopperProduct::choose(const std::vector<HopperTile>& tiles, const HopperWork& work, std::int64_t m) {
  return *std::min_element(tiles.begin(), tiles.end(),
                           [&](const HopperTile& a, const HopperTile& b) { return hopper_seconds(work, a, m) < hopper_seconds(work, b, m); });
}

std::vector<Config> HopperProduct::configs() const {
  std::vector<Config> list(1);
  const std::vector<HopperTile> possible = blocked_ ? tiles_ : possible_hopper_tiles(work_);
  for (const HopperTile& tile : possible) {
    const int most = hopper_stages(work_, tile);
    for (int stages = most; stages >= 2; stages = stages > 4 ? 4 : stages - 1)
      list.push_back({{"tile_m", tile.block_m}, {"tile_n", tile.block_n}, {"stages", stages}});
  }
  return list;
}

double HopperProduct::seconds(const DeviceLimits& limits) const {
  HopperWork work = work_;
  if (batches_) work.groups = most_batches_;
  const HopperTile tile = choose(tiles_, work, most_rows_);
  work.set_limits(limits);
  return hopper_launch_seconds(work, tile, most_rows_);
}

gemm::HopperParams HopperProduct::params(const LaunchArgs& args, const View& view, const HopperTile& tile) const {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const bool grouped = op_ == OpKind::grouped_linear;
  const std::int64_t groups = grouped ? w.shape[0] : view.batches;
  gemm::HopperParams p{};
  const auto map_of = [&](void* data, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride, int box_rows) {
    const auto width = static_cast<std::uint32_t>(gemm::HopperShape::tile_row / bytes_of(dtype));
    return std::bit_cast<TensorMapBytes>(
        args.queue->device().tensor_map({data, dtype, rows, columns, stride, static_cast<std::uint32_t>(box_rows), width, gemm::HopperShape::tile_row}));
  };
  const auto map = [&](void* data, DType dtype, std::int64_t rows, std::int64_t stride, int box_rows) {
    return map_of(data, dtype, rows, k_, stride, box_rows);
  };
  const std::int64_t x_rows = (view.batches - 1) * (view.x_batch / view.x_stride) + view.m;
  if (split_) p.a = map(args.workspace, DType::bf16, 3 * view.m, k_, tile.block_m);
  else p.a = map(x.data, a_, x_rows, view.x_stride, tile.block_m);
  const std::int64_t w_step = view.w_batch / view.w_stride;
  p.b = map(w.data, b_, (groups - 1) * w_step + n_, view.w_stride, tile.block_n);
  if (dual_) p.b_up = map(args.inputs[2].data, b_, n_, n_ > 1 ? args.inputs[2].strides[0] : k_, tile.block_n);
  if (work_.ungrouped) p.y_map = map_of(y.data, out_, view.m, n_, view.y_stride != 0 ? view.y_stride : n_, 16);
  p.y = y.data;
  p.y_stride = view.y_stride;
  p.y_group = view.y_batch;
  p.m = narrow(view.m);
  p.groups = narrow(groups);
  p.a_group = narrow(view.x_batch / view.x_stride);
  p.b_group = narrow(w_step);
  p.a_part = p.m;
  const auto input = [&](std::size_t i) -> const TensorView& { return args.inputs[i]; };
  const std::size_t row_at = grouped ? 4 : 2, column_at = row_at + 1;
  if (row_scale_) {
    p.row_scale = input(row_at).as<const float>();
    p.row_scale_step = narrow(view.scale_stride);
    p.row_scale_block = left_.blocks > 1 ? 1 : 0;
  }
  if (column_scale_) {
    p.column_scale = input(column_at).as<const float>();
    if (grouped) p.column_scale_group = input(column_at).strides[0];
    p.column_scale_step = right_.group == 0 ? 0 : right_.blocks > 1 ? narrow(input(column_at).strides[grouped ? 1 : 0]) : 1;
  }
  if (grouped) p.offsets = input(2).data;
  if (bias_) {
    const TensorView& bias = input(op_ == OpKind::scaled_mm ? 4 : op_ == OpKind::linear ? 2 : 3);
    p.bias = bias.data;
    if (grouped) p.bias_group = bias.strides[0];
  }
  if (bias_up_) p.bias_up = input(4).data;
  const std::int64_t tiles_m = grouped ? div_up(view.m, tile.block_m) + groups : div_up(view.m, tile.block_m) * view.batches;
  p.items = narrow(tiles_m * div_up(n_, tile.block_n));
  return p;
}

void HopperProduct::launch(const LaunchArgs& args) const {
  if (args.outputs[0].elements() == 0) return;
  const std::optional<View> view = view_of(args);
  if (!view) return general_.launch(args, tiles_.size() + (split_ ? 1 : 0));
  if (split_) {
    const gemm::PartsParams parts{args.inputs[0].data, args.workspace, view->x_stride, narrow(view->m), narrow(k_)};
    args.queue->run(tiles_.size(), div_up(view->m * k_, gemm::parts_item), parts);
  }
  HopperWork work = work_;
  work.groups = op_ == OpKind::grouped_linear ? args.inputs[1].shape[0] : view->batches;
  const HopperTile tile = choose(tiles_, work, view->m);
  const auto program = static_cast<std::size_t>(std::find(tiles_.begin(), tiles_.end(), tile) - tiles_.begin());
  const gemm::HopperParams p = params(args, *view, tile);
  args.queue->run(program, p.items, p, args.queue->resident_blocks(program));
}

}  // namespace cermet::cuda
