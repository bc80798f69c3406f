#include "kernel/cuda/gemm/general.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

constexpr int small_tile = 64, large_tile = 128, threads = 256;

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

void set_steps(const RowAxes& axes, const AxisSteps& steps, std::int64_t (&batch)[gemm::max_batch_rank], std::int64_t* row) {
  for (int axis = 0; axis + 1 < axes.rank; ++axis) batch[axis] = steps[static_cast<std::size_t>(axis)];
  if (row != nullptr) *row = steps[static_cast<std::size_t>(axes.rank - 1)];
}

bool is_one_value(const TensorView& view) { return view.elements() == 1 && view.shape.rank() <= 1; }

}  // namespace

GeneralProduct::Operands GeneralProduct::operands_of(OpKind op) {
  switch (op) {
    case OpKind::linear: return {.bias = 2};
    case OpKind::dual_linear: return {.w_up = 2, .bias = 3, .bias_up = 4};
    case OpKind::scaled_mm: return {.bias = 4, .x_scale = 2, .w_scale = 3, .zero_point = 5, .residual = 6, .out_scale = 7};
    case OpKind::grouped_linear: return {.bias = 3, .offsets = 2, .x_scale = 4, .w_scale = 5};
    default: return {};
  }
}

GeneralProduct::GeneralProduct(const Problem& problem, Programs programs, const Config& config)
    : op_(problem.op->kind),
      operands_(operands_of(op_)),
      kinds_(programs),
      a_(problem.input(0).dtype),
      b_(problem.input(1).dtype),
      out_(problem.outputs[0].dtype) {
  const auto given = [&](int i) { return i >= 0 && problem.has(static_cast<std::size_t>(i)); };
  const auto type = [&](int i) -> const TensorType& { return problem.input(static_cast<std::size_t>(i)); };
  if (op_ == OpKind::matmul) {
    transpose_a_ = problem.attributes.flag("transpose_a");
    transpose_b_ = problem.attributes.flag("transpose_b");
  }
  if (op_ == OpKind::dual_linear) activation_ = problem.attributes.text("activation");
  if (given(operands_.bias)) bias_ = type(operands_.bias).dtype;
  if (given(operands_.bias_up)) bias_up_ = type(operands_.bias_up).dtype;
  if (given(operands_.residual)) residual_ = type(operands_.residual).dtype;
  if (given(operands_.offsets)) offsets_ = type(operands_.offsets).dtype;
  zero_point_ = given(operands_.zero_point);
  const Dims& x = problem.input(0).dims;
  if (given(operands_.x_scale)) left_ = *row_scale_grid(type(operands_.x_scale).dims, {x.begin(), x.end() - 1}, x.back());
  if (given(operands_.w_scale)) {
    const Dims &scale = type(operands_.w_scale).dims, &w = problem.input(1).dims;
    right_ = op_ == OpKind::grouped_linear ? *stacked_scale_grid(scale, w) : *column_scale_grid(scale, w[0], w[1]);
  }
  multiprocessors_ = problem.target->multiprocessors;
  if (problem.target->compute_capability >= 80) stages_ = 4;
  const Dims& y = problem.outputs[0].dims;
  for (std::size_t axis = 0; axis + 1 < y.size(); ++axis) most_rows_ *= y[axis].value(problem.maximum);
  most_columns_ = y.back().value(problem.maximum);
  most_k_ = problem.size(0, transpose_a_ ? -2 : -1);
  if (op_ == OpKind::grouped_linear) groups_ = problem.size(1, 0);
  most_bytes_ = cost_of(problem).bytes;
  most_tiles_ = static_cast<double>(most_rows_) * static_cast<double>(most_columns_) / (large_tile * large_tile);
  tile_ = config.find("tile").value_or(0);
}

bool GeneralProduct::has_large() const {
  if (tile_ != 0) return tile_ == large_tile;
  return kinds_ != Programs::small && most_tiles_ >= static_cast<double>(enough_tiles);
}

std::vector<Config> GeneralProduct::configs() { return {{}, {{"tile", small_tile}}, {{"tile", large_tile}}}; }

// Assumed, not measured: the CUDA cores reach half of their peak, byte dot products four times as much, and mma.sync six tenths of the tensor cores' peak.
double GeneralProduct::seconds(const DeviceLimits& limits) const {
  const bool tensor = kinds_ == Programs::tensor;
  const int tile = has_large() ? large_tile : small_tile, blocks = tile == small_tile ? 2 : 1;  // on an SM
  const double rate = tensor ? 0.6 * limits.operations_per_second(a_) : (a_ == DType::i8 ? 2.0 : 0.5) * limits.f32_operations_per_second;
  const std::int64_t columns = op_ == OpKind::dual_linear ? tile / 2 : tile, resident = std::int64_t{multiprocessors_} * blocks;
  const std::int64_t tiles = (div_up(std::max<std::int64_t>(most_rows_, 1), tile) + groups_) * div_up(std::max<std::int64_t>(most_columns_, 1), columns);
  const double length = static_cast<double>(most_k_), operations = static_cast<double>(div_up(tiles, resident) * resident) * 2 * tile * tile * length;
  const double copied = static_cast<double>(tiles) * tile * length * static_cast<double>(size_of(a_) + size_of(b_));
  return 3500 / limits.clock_hz + std::max({operations / rate, copied / limits.cache_bytes_per_second, most_bytes_ / limits.read_bytes_per_second});
}

Program GeneralProduct::program(bool tensor, int tile) const {
  std::string config = fmt::format(".a = {}, .b = {}, .out = {}, .bias = {}, .bias_up = {}, .residual = {}, .offsets = {}", device_name(a_), device_name(b_),
                                   device_name(out_), device_name(bias_), device_name(bias_up_), device_name(residual_), device_name(offsets_));
  config += fmt::format(", .tensor = {}, .block = {}, .stages = {}, .a_outer = {}, .b_outer = {}, .dual = {}, .grouped = {}, .blocked = {}, .zero_point = {}",
                        device_name(tensor), tile, stages_, device_name(transpose_a_), device_name(!transpose_b_), device_name(op_ == OpKind::dual_linear),
                        device_name(op_ == OpKind::grouped_linear), device_name(std::max(left_.blocks, right_.blocks) > 1), device_name(zero_point_));
  return {.header = "kernel/cuda/device/gemm/general.cuh",
          .task = fmt::format("cermet::gemm::General<cermet::gemm::GeneralConfig{{{}, .activation = cermet::Activation::{}}}>", config, activation_),
          .threads = threads,
          .shared_bytes = tensor ? slab_bytes(tile) * 2 * stages_ : tile_bytes(tile),
          .min_blocks = tile == small_tile ? 2 : 1};
}

std::vector<Program> GeneralProduct::programs() const {
  std::vector<Program> list{program(false, small_tile)};
  if (kinds_ == Programs::tensor) {
    list.front().fallback = true;
    list.push_back(program(true, small_tile));
  }
  if (has_large()) list.push_back(program(kinds_ == Programs::tensor, large_tile));
  return list;
}

Decline GeneralProduct::declines_tensor(const Problem& problem) {
  const DType a = problem.input(0).dtype, b = problem.input(1).dtype;
  if (a != b || (a != DType::f16 && a != DType::bf16 && a != DType::i8)) return fmt::format("no instruction multiplies {} with {}", name_of(a), name_of(b));
  if (a == DType::bf16 && problem.target->compute_capability < 80) return "needs compute capability 8.0 for bf16";
  if (problem.op->kind == OpKind::scaled_mm && problem.has(5)) return "a_zp is given";
  return std::nullopt;
}

void GeneralProduct::set_rows(const LaunchArgs& args, gemm::GeneralParams& p) const {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  const auto view = [&](int i) { return i >= 0 && args.has(static_cast<std::size_t>(i)) ? &args.inputs[static_cast<std::size_t>(i)] : nullptr; };
  const int leads = y.shape.rank() - 1, a_row = transpose_a_ ? a.shape.rank() - 1 : a.shape.rank() - 2;
  const TensorView *residual = view(operands_.residual), *scale = view(operands_.x_scale), *zero = view(operands_.zero_point);
  enum { A, Y, RESIDUAL, SCALE, ZERO, B, COUNT };
  std::array<AxisSteps, COUNT> steps{};
  steps[Y] = steps_along(y, leads, 1);
  if (residual != nullptr) steps[RESIDUAL] = steps_along(*residual, leads, 1);
  if (scale != nullptr && left_.group != 0) steps[SCALE] = steps_along(*scale, leads, scale->shape.rank() - leads);
  if (zero != nullptr && !is_one_value(*zero)) steps[ZERO] = steps_along(*zero, leads, 0);
  if (op_ == OpKind::matmul) {
    steps[A] = steps_along(a, leads - 1, 2);
    steps[A][static_cast<std::size_t>(leads - 1)] = a.strides[a_row];
    steps[B] = steps_along(b, leads - 1, 2);
  } else {
    steps[A] = steps_along(a, leads, 1);
  }
  const RowAxes axes = merge_axes(y.shape, leads, steps, B);
  p.batch_rank = axes.rank - 1;
  for (int axis = 0; axis < p.batch_rank; ++axis) p.batch_dims[axis] = static_cast<std::int32_t>(axes.dims[static_cast<std::size_t>(axis)]);
  p.m = static_cast<std::int32_t>(axes.m());
  set_steps(axes, steps[A], p.a.batch, &p.a.row);
  set_steps(axes, steps[Y], p.y.batch, &p.y.row);
  set_steps(axes, steps[RESIDUAL], p.residual.batch, &p.residual.row);
  set_steps(axes, steps[SCALE], p.row_scale.batch, &p.row_scale.row);
  set_steps(axes, steps[ZERO], p.zero_point.batch, &p.zero_point.row);
  set_steps(axes, steps[B], p.b_batch, nullptr);
  p.a.data = a.data;
  p.y.data = y.data;
  if (residual != nullptr) p.residual.data = residual->data;
  if (scale != nullptr) p.row_scale.data = scale->data;
  if (zero != nullptr) p.zero_point.data = zero->data;
}

void GeneralProduct::set_scales(const LaunchArgs& args, gemm::GeneralParams& p) const {
  const auto has = [&](int i) { return i >= 0 && args.has(static_cast<std::size_t>(i)); };
  p.row_scale_block = left_.blocks > 1 ? 1 : 0;
  p.column_scale_columns = 1;
  if (has(operands_.w_scale)) {
    const TensorView& scale = args.inputs[static_cast<std::size_t>(operands_.w_scale)];
    const int first = op_ == OpKind::grouped_linear ? 1 : 0;
    p.column_scale = scale.as<const float>();
    if (first == 1) p.column_scale_group = scale.strides[0];
    if (right_.group != 0) {
      p.column_scale_columns = static_cast<std::int32_t>(right_.group);
      p.column_scale_row = scale.strides[first];
      p.column_scale_block = right_.blocks > 1 ? 1 : 0;
    }
  }
  if (has(operands_.out_scale)) p.out_scale = args.inputs[static_cast<std::size_t>(operands_.out_scale)].as<const float>();
}

gemm::GeneralParams GeneralProduct::params(const LaunchArgs& args) const {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  gemm::GeneralParams p{};
  set_rows(args, p);
  set_scales(args, p);
  const int rank = b.shape.rank(), a_rank = a.shape.rank();
  p.n = static_cast<std::int32_t>(y.shape.back());
  p.k = static_cast<std::int32_t>(a.shape[transpose_a_ ? a_rank - 2 : a_rank - 1]);
  p.a_k = transpose_a_ ? a.strides[a_rank - 2] : 1;
  p.b = b.data;
  p.b_k = transpose_b_ ? 1 : b.strides[rank - 2];
  p.b_row = transpose_b_ ? b.strides[rank - 2] : 1;
  if (op_ == OpKind::grouped_linear) {
    p.b_group = b.strides[0];
    p.groups = static_cast<std::int32_t>(b.shape[0]);
    p.offsets = args.inputs[static_cast<std::size_t>(operands_.offsets)].data;
  }
  const auto operand = [&](int i) { return i >= 0 && args.has(static_cast<std::size_t>(i)) ? &args.inputs[static_cast<std::size_t>(i)] : nullptr; };
  const TensorView *w_up = operand(operands_.w_up), *bias = operand(operands_.bias), *bias_up = operand(operands_.bias_up);
  p.b_up = w_up != nullptr ? w_up->data : b.data;
  p.b_up_row = w_up != nullptr ? w_up->strides[0] : p.b_row;
  if (bias != nullptr) p.bias = bias->data;
  if (bias != nullptr && op_ == OpKind::grouped_linear) p.bias_group = bias->strides[0];
  if (bias_up != nullptr) p.bias_up = bias_up->data;
  const bool sixteen = kinds_ == Programs::tensor || a_ == DType::i8;
  const auto bytes = static_cast<std::int64_t>(size_of(a_)), b_bytes = static_cast<std::int64_t>(size_of(b_));
  const std::int64_t a_unit = sixteen ? 16 : 4 * bytes, b_unit = sixteen ? 16 : 4 * b_bytes;
  p.a_vectors = aligned(a.data, {transpose_a_ ? p.a_k : p.a.row}, bytes, a_unit);
  p.b_vectors = aligned(b.data, {transpose_b_ ? p.b_row : p.b_k, p.b_group}, b_bytes, b_unit);
  if (w_up != nullptr) p.b_vectors = p.b_vectors && aligned(p.b_up, {p.b_up_row}, b_bytes, b_unit);
  for (int axis = 0; axis < p.batch_rank; ++axis) {
    p.a_vectors = p.a_vectors && aligned(nullptr, {p.a.batch[axis]}, bytes, a_unit);
    p.b_vectors = p.b_vectors && aligned(nullptr, {p.b_batch[axis]}, b_bytes, b_unit);
  }
  return p;
}

void GeneralProduct::launch(const LaunchArgs& args, std::size_t first_program) const {
  if (args.outputs[0].elements() == 0) return;
  const gemm::GeneralParams p = params(args);
  std::int64_t batches = 1;
  for (int axis = 0; axis < p.batch_rank; ++axis) batches *= p.batch_dims[axis];
  const auto items = [&](int tile) {
    const std::int64_t columns = op_ == OpKind::dual_linear ? tile / 2 : tile;
    return (div_up(p.m, tile) + (op_ == OpKind::grouped_linear ? p.groups : 0)) * div_up(p.n, columns) * batches;
  };
  const bool tensor = kinds_ == Programs::tensor, fits = !tensor || (p.a_vectors && p.b_vectors);
  const bool enough = items(large_tile) >= enough_tiles && p.m >= p.groups * large_tile * 3 / 4;
  const bool large = fits && has_large() && (enough || tile_ != 0);
  const std::size_t program = !fits ? 0 : (tensor ? 1u : 0u) + (large ? 1u : 0u);
  args.queue->run(first_program + program, items(large ? large_tile : small_tile), p);
}

namespace {

using Kinds = GeneralProduct::Programs;

template <Kinds kinds>
Kernel make(const char* name, OpKind op, const char* summary) {
  return {.name = name,
          .op = op,
          .summary = summary,
          .bind = [](const Problem& p, const Config& config) -> Launcher {
            return [product = GeneralProduct(p, kinds, config)](const LaunchArgs& args) { product.launch(args); };
          },
          .programs = [](const Problem& p, const Config& config) { return GeneralProduct(p, kinds, config).programs(); },
          .configs = [](const Problem&) { return GeneralProduct::configs(); },
          .cost = [](const Problem& p, const Config& config, const DeviceLimits& limits) { return GeneralProduct(p, kinds, config).seconds(limits); }};
}

Kernel general(const char* name, OpKind op) {
  return make<Kinds::all>(name, op, "float32 multiply-adds (int8: byte dot products) for any types, layouts, scales and alignment");
}
Kernel tensor(const char* name, OpKind op) {
  Kernel kernel =
      make<Kinds::tensor>(name, op, "mma.sync fed by asynchronous copies, for every architecture; launches whose rows are not aligned run on the CUDA cores");
  kernel.declines = GeneralProduct::declines_tensor;
  return kernel;
}

}  // namespace

extern const Kernel gemm_linear_general, gemm_matmul_general, gemm_dual_linear_general, gemm_scaled_mm_general, gemm_grouped_linear_general;
const Kernel gemm_linear_general = general("gemm.linear.general", OpKind::linear);
const Kernel gemm_matmul_general = general("gemm.matmul.general", OpKind::matmul);
const Kernel gemm_dual_linear_general = general("gemm.dual_linear.general", OpKind::dual_linear);
const Kernel gemm_scaled_mm_general = general("gemm.scaled_mm.general", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_general = general("gemm.grouped_linear.general", OpKind::grouped_linear);

extern const Kernel gemm_linear_tensor, gemm_matmul_tensor, gemm_dual_linear_tensor, gemm_scaled_mm_tensor, gemm_grouped_linear_tensor;
const Kernel gemm_linear_tensor = tensor("gemm.linear.tensor", OpKind::linear);
const Kernel gemm_matmul_tensor = tensor("gemm.matmul.tensor", OpKind::matmul);
const Kernel gemm_dual_linear_tensor = tensor("gemm.dual_linear.tensor", OpKind::dual_linear);
const Kernel gemm_scaled_mm_tensor = tensor("gemm.scaled_mm.tensor", OpKind::scaled_mm);
const Kernel gemm_grouped_linear_tensor = tensor("gemm.grouped_linear.tensor", OpKind::grouped_linear);

}  // namespace cermet::cuda
