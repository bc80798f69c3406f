#include "kernel/cuda/gemm/general.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/gemm/column_sums.hpp"
#include "kernel/cuda/gemm/gate_cut.hpp"
#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/cuda/gemm/unweighted_rows.hpp"
#include "kernel/cuda/narrow.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

constexpr int small_tile = 64, large_tile = 128;

/// The large program is taken from this many of its tiles on: fewer leave SMs idle.
constexpr std::int64_t enough_tiles = 96;

/// Bytes of one operand's slab for the tensor cores: rows of 64 bytes, padded by 16.
constexpr std::int64_t slab_bytes(int tile) { return tile * (64 + 16); }
/// Bytes of two buffers of both operands' tiles: 16 words deep, rows padded by 4.
constexpr std::int64_t tile_bytes(int tile) { return 2 * 2 * 16 * (tile + 4) * 4; }

/// Whether all addresses that these steps reach are multiples of `bytes`.
bool aligned(const void* data, std::initializer_list<std::int64_t> steps, std::int64_t element, std::int64_t bytes) {
  bool even = reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0;
  for (const std::int64_t step : steps) even = even && step * element % bytes == 0;
  return even;
}

void set_steps(const RowAxes& axes, const AxisSteps& steps, std::int64_t (&batch)[gemm::max_batch_rank],
               std::int64_t* row) {
  for (int axis = 0; axis + 1 < axes.rank; ++axis) batch[axis] = steps[static_cast<std::size_t>(axis)];
  if (row != nullptr) *row = steps[static_cast<std::size_t>(axes.rank - 1)];
}

}  // namespace

GeneralProduct::GeneralProduct(const Region& region, Programs programs, const Config& config)
    : op_(region.problem().op->kind),
      product_(region, loops),
      kinds_(programs),
      a_(region.problem().input(0).dtype),
      b_(region.problem().input(1).dtype) {
  const Problem& problem = region.problem();
  if (op_ == OpKind::matmul) {
    transpose_a_ = problem.attributes.flag("transpose_a");
    transpose_b_ = problem.attributes.flag("transpose_b");
  }
  if (product_.at.offsets >= 0) offsets_ = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
  multiprocessors_ = problem.target->multiprocessors;
  if (problem.target->compute_capability >= 80) stages_ = 4;
  const Dims& y = problem.outputs[0].dims;
  for (std::size_t axis = 0; axis + 1 < y.size(); ++axis) most_rows_ *= y[axis].value(problem.maximum);
  most_columns_ = y.back().value(problem.maximum) / (product_.gated ? 2 : 1);
  most_k_ = problem.size(0, transpose_a_ ? -2 : -1);
  if (op_ == OpKind::grouped_linear) groups_ = problem.size(1, 0);
  most_bytes_ = cost_of(region).bytes;
  most_tiles_ = static_cast<double>(most_rows_) * static_cast<double>(most_columns_) / (large_tile * large_tile);
  tile_ = config.find("tile").value_or(0);
}

bool GeneralProduct::has_large() const {
  if (tile_ != 0) return tile_ == large_tile;
  return kinds_ != Programs::small && most_tiles_ >= static_cast<double>(enough_tiles);
}

std::vector<Config> GeneralProduct::configs() { return {{}, {{"tile", small_tile}}, {{"tile", large_tile}}}; }

// Assumed, not measured: the CUDA cores reach half of their peak, byte dot products four times as much, and mma.sync
// six tenths of the tensor cores' peak. Measured on an H200 with reductions of 16 and 32 terms
// (docs/notes/conv-cuda.md): half a cycle for every result of a tile, beside everything else.
double GeneralProduct::seconds(const DeviceLimits& limits) const {
  const bool tensor = kinds_ == Programs::tensor;
  const int tile = has_large() ? large_tile : small_tile, blocks = tile == small_tile ? 2 : 1;  // on an SM
  const double rate = tensor ? 0.6 * limits.operations_per_second(a_)
                             : (a_ == DType::i8 ? 2.0 : 0.5) * limits.f32_operations_per_second;
  const std::int64_t columns = tile_columns(tile), resident = std::int64_t{multiprocessors_} * blocks;
  const std::int64_t tiles = (div_up(std::max<std::int64_t>(most_rows_, 1), tile) + groups_) *
                             div_up(std::max<std::int64_t>(most_columns_, 1), columns);
  const double length = static_cast<double>(most_k_),
               operations = static_cast<double>(div_up(tiles, resident) * resident) * 2 * tile * tile * length;
  const double copied = static_cast<double>(tiles) * tile * length * static_cast<double>(size_of(a_) + size_of(b_));
  const double tile_end = static_cast<double>(div_up(tiles, resident)) * (1000 + 0.5 * tile * tile);
  return (3500 + tile_end) / limits.clock_hz + std::max({operations / rate, copied / limits.cache_bytes_per_second,
                                                         most_bytes_ / limits.read_bytes_per_second});
}

Program GeneralProduct::program(bool tensor, int tile) const {
  const GeneratedType epilogue = product_.epilogue();
  const gemm::GeneralConfig config{.a = a_,
                                   .b = b_,
                                   .offsets = offsets_,
                                   .tensor = tensor,
                                   .block = tile,
                                   .stages = stages_,
                                   .a_outer = transpose_a_,
                                   .b_outer = !transpose_b_,
                                   .dual = product_.has_two_weights(),
                                   .grouped = op_ == OpKind::grouped_linear,
                                   .blocked = product_.blocked};
  return {.header = "kernel/cuda/device/gemm/general.cuh",
          .task = fmt::format("cermet::gemm::General<cermet::gemm::GeneralConfig{}, {}>", config_text(config),
                              epilogue.name),
          .prelude = epilogue.source,
          .threads = gemm::general_threads,
          .shared_bytes = tensor ? slab_bytes(tile) * 2 * stages_ : tile_bytes(tile),
          .min_blocks = tile == small_tile ? 2 : 1,
          .divides_warps = true};
}

std::vector<Program> GeneralProduct::programs() const {
  std::vector<Program> list{program(false, small_tile)};
  if (kinds_ == Programs::tensor) {
    list.front().fallback = true;
    list.push_back(program(true, small_tile));
  }
  if (has_large()) list.push_back(program(kinds_ == Programs::tensor, large_tile));
  if (product_.column_sums) list.push_back(column_sums_program());
  return list;
}

std::int64_t GeneralProduct::workspace() const { return product_.column_sums ? column_sums_bytes(most_columns_) : 0; }

void GeneralProduct::launch_sums(const LaunchArgs& args, std::size_t first_program) const {
  if (!product_.column_sums) return;
  const std::size_t before = (kinds_ == Programs::tensor ? 2u : 1u) + (has_large() ? 1u : 0u);
  launch_column_sums(*args.queue, first_program + before, *product_.given(args, product_.at.w), args.workspace);
}

/// On Hopper not what its own product takes without what follows, because that and a launch for the rest are faster
/// than these loops.
Decline GeneralProduct::declines(const Region& region) {
  if (Decline reason = Product::declines(region, loops)) return reason;
  const Problem& p = region.problem();
  if (region.is_single() || p.target->compute_capability != 90) return std::nullopt;
  const Decline reason = HopperProduct::declines(region);
  return !reason || HopperProduct::declines(p)
             ? std::nullopt
             : Decline(fmt::format("Hopper's product is faster alone, and declines the rest: {}", *reason));
}

Decline GeneralProduct::declines_tensor(const Region& region) {
  const Problem& problem = region.problem();
  const DType a = problem.input(0).dtype, b = problem.input(1).dtype;
  if (a != b || (a != DType::f16 && a != DType::bf16 && a != DType::i8))
    return fmt::format("no instruction multiplies {} with {}", name_of(a), name_of(b));
  if (a == DType::bf16 && problem.target->compute_capability < 80) return "needs compute capability 8.0 for bf16";
  return declines(region);
}

void GeneralProduct::set_rows(const LaunchArgs& args, gemm::GeneralParams& p) const {
  const TensorView& y = args.outputs[product_.y];
  const ProductRows rows = product_.rows(args, y);
  const RowAxes& axes = rows.axes;
  p.batch_rank = axes.rank - 1;
  for (int axis = 0; axis < p.batch_rank; ++axis)
    p.batch_dims[axis] = narrow(axes.dims[static_cast<std::size_t>(axis)], "product", "matrices of a batch");
  p.m = narrow(axes.m(), "product", "rows");
  set_steps(axes, rows.steps[ProductRows::X], p.a.batch, &p.a.row);
  set_steps(axes, rows.steps[ProductRows::Y], p.y.batch, &p.y.row);
  set_steps(axes, rows.steps[ProductRows::SCALE], p.row_scale.batch, &p.row_scale.row);
  set_steps(axes, rows.steps[ProductRows::W], p.b_batch, nullptr);
  p.a.data = product_.given(args, product_.at.x)->data;
  p.y.data = y.data;
  if (product_.second) {
    set_steps(axes, rows.steps[ProductRows::SECOND], p.second.batch, &p.second.row);
    p.second.data = args.outputs[product_.second->y].data;
  }
  if (const TensorView* scale = product_.given(args, product_.at.x_scale)) p.row_scale.data = scale->data;
  for (std::size_t i = 0; i < product_.extras().size(); ++i) {
    p.extra[i].operand = product_.operand(args, i);
    set_steps(axes, rows.steps[ProductRows::EXTRA + i], p.extra[i].batch, &p.extra[i].operand.row);
  }
}

void GeneralProduct::set_scales(const LaunchArgs& args, gemm::GeneralParams& p) const {
  if (const TensorView* scale = product_.given(args, product_.at.x_scale); scale && product_.left.blocks > 1)
    p.row_scale_block = scale->strides.back();
  p.column_scale_columns = 1;
  const TensorView* scale = product_.given(args, product_.at.w_scale);
  if (scale == nullptr) return;
  const int first = op_ == OpKind::grouped_linear ? 1 : 0;
  p.column_scale = scale->as<const float>();
  if (first == 1) p.column_scale_group = scale->strides[0];
  if (product_.right.group != 0) {
    p.column_scale_columns = narrow(product_.right.group, "product", "columns of a scale");
    p.column_scale_row = scale->strides[first];
    p.column_scale_block = product_.right.blocks > 1 ? scale->strides.back() : 0;
  }
}

gemm::GeneralParams GeneralProduct::params(const LaunchArgs& args) const {
  const TensorView &a = *product_.given(args, product_.at.x), &b = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  gemm::GeneralParams p{};
  set_rows(args, p);
  set_scales(args, p);
  const int rank = b.shape.rank(), a_rank = a.shape.rank();
  p.n = narrow(y.shape.back(), "product", "columns");
  p.k = narrow(a.shape[transpose_a_ ? a_rank - 2 : a_rank - 1], "product", "terms of a sum");
  p.a_k = transpose_a_ ? a.strides[a_rank - 2] : 1;
  p.b = b.data;
  p.b_k = transpose_b_ ? 1 : b.strides[rank - 2];
  p.b_row = transpose_b_ ? b.strides[rank - 2] : 1;
  if (op_ == OpKind::grouped_linear) {
    p.b_group = b.strides[0];
    p.groups = narrow(b.shape[0], "product", "groups");
    p.offsets = product_.given(args, product_.at.offsets)->data;
  }
  const TensorView second = product_.second_weight(args);
  p.b_up = second.present ? second.data : b.data;
  p.b_up_row = second.present ? second.strides[second.shape.rank() - 2] : p.b_row;
  if (product_.column_sums) p.column_sums = reinterpret_cast<const std::int32_t*>(args.workspace);
  set_vectors(p, second.present);
  return p;
}

/// Whether operands can be read several elements at a time.
void GeneralProduct::set_vectors(gemm::GeneralParams& p, bool dual) const {
  const bool sixteen = kinds_ == Programs::tensor || a_ == DType::i8;
  const auto bytes = byte_size(a_), b_bytes = byte_size(b_);
  const std::int64_t a_unit = sixteen ? 16 : 4 * bytes, b_unit = sixteen ? 16 : 4 * b_bytes;
  p.a_vectors = aligned(p.a.data, {transpose_a_ ? p.a_k : p.a.row}, bytes, a_unit);
  p.b_vectors = aligned(p.b, {transpose_b_ ? p.b_row : p.b_k, p.b_group}, b_bytes, b_unit);
  if (dual) p.b_vectors = p.b_vectors && aligned(p.b_up, {p.b_up_row}, b_bytes, b_unit);
  for (int axis = 0; axis < p.batch_rank; ++axis) {
    p.a_vectors = p.a_vectors && aligned(nullptr, {p.a.batch[axis]}, bytes, a_unit);
    p.b_vectors = p.b_vectors && aligned(nullptr, {p.b_batch[axis]}, b_bytes, b_unit);
  }
}

void GeneralProduct::launch(const LaunchArgs& args, std::size_t first_program) const {
  if (args.outputs[product_.y].elements() == 0) return;
  const gemm::GeneralParams p = params(args);
  std::int64_t batches = 1;
  for (int axis = 0; axis < p.batch_rank; ++axis) batches *= p.batch_dims[axis];
  const auto items = [&](int tile) {
    return (div_up(p.m, tile) + (op_ == OpKind::grouped_linear ? p.groups : 0)) * div_up(p.n, tile_columns(tile)) *
           batches;
  };
  const bool tensor = kinds_ == Programs::tensor, fits = !tensor || (p.a_vectors && p.b_vectors);
  const bool enough = items(large_tile) >= enough_tiles && p.m >= p.groups * large_tile * 3 / 4;
  const bool large = fits && has_large() && (enough || tile_ != 0);
  const std::size_t program = !fits ? 0 : (tensor ? 1u : 0u) + (large ? 1u : 0u);
  launch_sums(args, first_program);
  args.queue->run(first_program + program, items(large ? large_tile : small_tile), p);
  OperandUse use;
  if (product_.column_sums) use.also_reads = {args.workspace, column_sums_bytes(p.n)};
  declare_operands(args, use);
}

}  // namespace cermet::cuda

// ---- Kernels

namespace cermet::cuda::gemm_general_kernels_file {
namespace {

using Kinds = GeneralProduct::Programs;

Kernel make(Kinds kinds, const char* name, OpKind op, const char* summary) {
  Kernel kernel = product_kernel(name, op, summary, [kinds](const Region& region, const Config& config) {
    return GeneralProduct(region, kinds, config);
  });
  kernel.configs = [](const Region&) { return GeneralProduct::configs(); };
  kernel.cut = gate_cut;
  return kernel;
}

Kernel general(const char* name, OpKind op) {
  return make(Kinds::all, name, op,
              "float32 multiply-adds (int8: byte dot products) for any types, layouts, scales and alignment");
}
Kernel tensor(const char* name, OpKind op) {
  Kernel kernel = make(Kinds::tensor, name, op,
                       "mma.sync fed by asynchronous copies, for every architecture; launches whose "
                       "rows are not aligned run on the CUDA cores");
  kernel.declines = GeneralProduct::declines_tensor;
  return kernel;
}

}  // namespace

extern const Kernel gemm_linear_general, gemm_matmul_general, gemm_dual_linear_general, gemm_scaled_mm_general,
    gemm_grouped_linear_general;
const Kernel gemm_linear_general = general("gemm.linear.general", OpKind::linear);
const Kernel gemm_matmul_general = general("gemm.matmul.general", OpKind::matmul);
const Kernel gemm_dual_linear_general = general("gemm.dual_linear.general", OpKind::dual_linear);
const Kernel gemm_scaled_mm_general = general("gemm.scaled_mm.general", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_general =
    with_unweighted_rows(general("gemm.grouped_linear.general", OpKind::grouped_linear));

extern const Kernel gemm_linear_tensor, gemm_matmul_tensor, gemm_dual_linear_tensor, gemm_scaled_mm_tensor,
    gemm_grouped_linear_tensor;
const Kernel gemm_linear_tensor = tensor("gemm.linear.tensor", OpKind::linear);
const Kernel gemm_matmul_tensor = tensor("gemm.matmul.tensor", OpKind::matmul);
const Kernel gemm_dual_linear_tensor = tensor("gemm.dual_linear.tensor", OpKind::dual_linear);
const Kernel gemm_scaled_mm_tensor = tensor("gemm.scaled_mm.tensor", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_tensor =
    with_unweighted_rows(tensor("gemm.grouped_linear.tensor", OpKind::grouped_linear));

}  // namespace cermet::cuda::gemm_general_kernels_file
