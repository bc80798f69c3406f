#include "kernel/cuda/gemv/gemv.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// Rows of one GEMM, and rows of a mixture's grouped GEMM, up to which weights are streamed once for each.
constexpr std::int64_t most_rows = 1, most_grouped_rows = 32;

/// Bytes of weight that make a block worth starting.
constexpr std::int64_t least_share = 8192;

bool streams(const Problem& p, std::int64_t row_bytes) { return p.target->compute_capability >= 90 && row_bytes > 0 && row_bytes % 16 == 0; }

bool has(const Problem& p, int operand) { return operand >= 0 && p.has(static_cast<std::size_t>(operand)); }
const TensorType& type_of(const Problem& p, int operand) { return p.input(static_cast<std::size_t>(operand)); }
DType dtype_or(const Problem& p, int operand, DType fallback) { return has(p, operand) ? type_of(p, operand).dtype : fallback; }

bool constant_shape(const Problem& p, std::size_t operand) {
  const Dims& dims = p.input(operand).dims;
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
}

}  // namespace

FewRows::Operands FewRows::operands_of(OpKind op) {
  switch (op) {
    case OpKind::linear: return {.bias = 2};
    case OpKind::dual_linear: return {.w_up = 2, .bias = 3, .bias_up = 4};
    case OpKind::scaled_mm: return {.bias = 4, .x_scale = 2, .w_scale = 3, .zero_point = 5, .residual = 6, .out_scale = 7};
    case OpKind::grouped_linear: return {.bias = 3, .offsets = 2, .x_scale = 4, .w_scale = 5};
    default: return {};
  }
}

Decline FewRows::declines(const Problem& p) {
  const std::int64_t limit = p.op->kind == OpKind::grouped_linear ? most_grouped_rows : most_rows;
  if (const std::int64_t rows = max_rows(p, 0); rows > limit) return fmt::format("up to {} rows: a weight is read once for each of them", rows);
  if (!constant_shape(p, 1)) return "the weight's shape is not known beforehand";
  const std::int64_t k = p.size(1, -1), n = p.size(1, -2), bytes = k * static_cast<std::int64_t>(size_of(p.input(1).dtype));
  if (k > gemv::longest_row || bytes > gemv::widest_row) return fmt::format("rows of {} elements do not fit in registers", k);
  if (n > std::int64_t{1} << 30) return fmt::format("{} columns are more than 32-bit numbers count", n);
  return std::nullopt;
}

namespace {

bool is_norm(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm; }
bool adds(const Problem& norm) { return norm.op->kind == OpKind::add_rms_norm; }
std::size_t weight_of(const Problem& norm) { return adds(norm) ? 2 : 1; }

/// The normalisation of a region of two nodes; null for a product alone.
const Problem* norm_of(const Region& region) { return region.is_single() ? nullptr : &region.nodes.front().problem; }

}  // namespace

Decline FewRows::declines_norm(const Region& region) {
  if (region.is_single()) return "expects a normalisation before it";
  if (region.nodes.size() != 2 || region.anchor != 1 || !is_norm(region.nodes[0].problem.op->kind)) return "computes one normalisation before the product";
  const Problem& norm = region.nodes[0].problem;
  const std::vector<RegionInput>& inputs = region.nodes[1].inputs;
  if (!inputs[0].is_inside() || inputs[0].output != 0 || std::ranges::count_if(inputs, &RegionInput::is_inside) != 1)
    return "the product reads the normalisation as more than its left operand";
  if (region.results.size() != norm.outputs.size() || region.results[0] != RegionPlace{1, 0}) return "the normalised row is read elsewhere";
  if (norm.outputs[0].dtype != DType::f32) return "the normalised row is rounded";
  if (!norm.has(weight_of(norm)) || norm.input(weight_of(norm)).rank() != 1) return "the normalisation has no weight of a row";
  if (adds(norm) && norm.attributes.flag("round_sum")) return "the sum is rounded before it is normalised";
  return declines(region.problem());
}

/// Operands of the schema in a launch's order; x is what the normalisation reads where there is one.
FewRows::Operands FewRows::places_of(const Region& region) {
  Operands places = operands_of(region.problem().op->kind);
  for (int* place : {&places.x, &places.w, &places.w_up, &places.bias, &places.bias_up, &places.offsets, &places.x_scale, &places.w_scale, &places.zero_point,
                     &places.residual, &places.out_scale}) {
    if (*place < 0) continue;
    const auto operand = region.operand_of(static_cast<std::size_t>(*place));
    *place = operand ? static_cast<int>(*operand) : -1;
  }
  if (const Problem* norm = norm_of(region)) places.x = static_cast<int>(*region.operand_of(0, adds(*norm) ? 1 : 0));
  return places;
}

FewRows::FewRows(const Region& region, const Config& config)
    : op_(region.problem().op->kind),
      operands_(places_of(region)),
      row_bytes_(region.problem().size(1, -1) * static_cast<std::int64_t>(size_of(region.problem().input(1).dtype))),
      constant_(region.is_constant(static_cast<std::size_t>(operands_.w)) &&
                (operands_.w_up < 0 || region.is_constant(static_cast<std::size_t>(operands_.w_up)))),
      stream_(config.empty() ? streams(region.problem(), row_bytes_) : config.at("stream") != 0) {
  const Problem& p = region.problem();
  const Problem* const norm = norm_of(region);
  if (norm != nullptr) {
    norm_weight_ = static_cast<int>(*region.operand_of(0, weight_of(*norm)));
    if (adds(*norm)) {
      delta_ = static_cast<int>(*region.operand_of(0, 0));
      sum_ = 1;
    }
    epsilon_ = static_cast<float>(norm->attributes.number("eps"));
    norm_offset_ = static_cast<float>(norm->attributes.number("weight_offset"));
  }
  const Operands schema = operands_of(op_);
  const Dims& x = p.input(0).dims;
  if (has(p, schema.x_scale)) left_ = *row_scale_grid(type_of(p, schema.x_scale).dims, {x.begin(), x.end() - 1}, x.back());
  if (has(p, schema.w_scale)) {
    const Dims &scale = type_of(p, schema.w_scale).dims, &w = p.input(1).dims;
    right_ = op_ == OpKind::grouped_linear ? *stacked_scale_grid(scale, w) : *column_scale_grid(scale, w[0], w[1]);
  }
  const DType w = p.input(1).dtype;
  const bool integer = w == DType::i8, blocks = std::max(left_.blocks, right_.blocks) > 1, dual = operands_.w_up >= 0;
  const int element = static_cast<int>(size_of(w)), k = static_cast<int>(p.size(1, -1));
  const gemv::RowShape shape = gemv::row_shape(k, element, dual ? 2 : 1, stream_, integer && blocks);
  const int held = shape.held * (integer ? 4 : 16 / element);  // registers of a row
  programs_.push_back({.header = "kernel/cuda/device/gemv/row.cuh",
                       .task = row_task(p, norm, stream_),
                       .threads = shape.threads(),
                       .shared_bytes = shape.shared_bytes(),
                       .min_blocks = shape.threads() > 512 || held > 56 ? 1
                                     : !stream_ && held <= 8            ? 3
                                                                        : 2,
                       .alternates = stream_});
}

std::vector<Config> FewRows::configs(const Region& region) {
  std::vector<Config> list{{}, {{"stream", 0}}};
  if (FewRows(region).stream_) list.push_back({{"stream", 1}});
  return list;
}

/// Memory is the limit; a launch whose weights do not stream starts to read them when the one before it has ended.
double FewRows::seconds(const Region& region, const DeviceLimits& limits) const {
  const double start = 3500 / limits.clock_hz + (stream_ ? 0 : limits.launch_seconds);
  return start + roofline_seconds(region, limits.f32_operations_per_second, limits);
}

std::string FewRows::row_task(const Problem& p, const Problem* norm, bool stream) const {
  const Operands schema = operands_of(op_);
  const DType w = p.input(1).dtype;
  const bool quantised = !dtypes::real.contains(w);
  const char* const scaling = !quantised ? "none" : std::max(left_.blocks, right_.blocks) > 1 ? "blocks" : "rows";
  return fmt::format(
      "cermet::gemv::Row<cermet::gemv::Config{{.k = {}, .x = {}, .w = {}, .out = {}, .bias = {}, .bias_up = {}, .residual = {}, .offsets = {}, "
      ".scaling = cermet::gemv::Scaling::{}, .dual = {}, .activation = cermet::Activation::{}, .grouped = {}, .zero_point = {}, .stream = {}, .prologue = "
      "{{{}}}}}>",
      p.size(1, -1), device_name(norm ? norm->input(adds(*norm) ? 1 : 0).dtype : p.input(0).dtype), device_name(w), device_name(p.outputs[0].dtype),
      device_name(dtype_or(p, schema.bias, DType::f32)), device_name(dtype_or(p, schema.bias_up, DType::f32)),
      device_name(dtype_or(p, schema.residual, DType::f32)), device_name(dtype_or(p, schema.offsets, DType::i32)), scaling, device_name(schema.w_up >= 0),
      schema.w_up >= 0 ? std::string_view(p.attributes.text("activation")) : "identity", device_name(schema.offsets >= 0),
      device_name(has(p, schema.zero_point)), device_name(stream), norm ? norm_config(*norm) : "");
}

std::string FewRows::norm_config(const Problem& norm) {
  return fmt::format(".norm = true, .delta = {}, .weight = {}, .sum = {}", device_name(norm.input(0).dtype), device_name(norm.input(weight_of(norm)).dtype),
                     device_name(norm.outputs.back().dtype));
}

const TensorView* FewRows::given(const LaunchArgs& args, int operand) const {
  return operand >= 0 && args.has(static_cast<std::size_t>(operand)) ? &args.inputs[static_cast<std::size_t>(operand)] : nullptr;
}

void FewRows::set_weights(const LaunchArgs& args, gemv::Params& p) const {
  const TensorView& w = *given(args, operands_.w);
  p.w = w.data;
  p.w_stride = w.strides[w.shape.rank() - 2];
  if (const TensorView* up = given(args, operands_.w_up)) {
    p.w_up = up->data;
    p.w_up_stride = up->strides[0];
  }
  if (const TensorView* offsets = given(args, operands_.offsets)) {
    p.w_group_stride = w.strides[0];
    p.offsets = offsets->data;
    p.groups = static_cast<std::int32_t>(w.shape[0]);
  }
  if (const TensorView* bias = given(args, operands_.bias)) {
    p.bias = bias->data;
    if (operands_.offsets >= 0) p.bias_group_stride = bias->strides[0];
  }
  if (const TensorView* bias = given(args, operands_.bias_up)) p.bias_up = bias->data;
  p.constant = constant_ ? 1 : 0;
}

void FewRows::set_scales(const LaunchArgs& args, gemv::Params& p) const {
  p.w_scale_columns = 1;
  if (const TensorView* scale = given(args, operands_.w_scale)) {
    const int first = operands_.offsets >= 0 ? 1 : 0;
    p.w_scale = scale->as<const float>();
    if (first == 1) p.w_scale_group_stride = scale->strides[0];
    if (right_.group != 0) {
      p.w_scale_columns = static_cast<std::int32_t>(right_.group);
      p.w_scale_stride = scale->strides[first];
      p.w_scale_block = right_.blocks > 1 ? 1 : 0;
    }
  }
  p.x_scale_block = left_.blocks > 1 ? 1 : 0;
  if (const TensorView* scale = given(args, operands_.out_scale)) p.out_scale = scale->as<const float>();
}

void FewRows::launch(const LaunchArgs& args) const {
  const TensorView &x = *given(args, operands_.x), &y = args.outputs[0];
  if (y.elements() == 0) return;
  const TensorView *delta = given(args, delta_), *sum = sum_ >= 0 ? &args.outputs[static_cast<std::size_t>(sum_)] : nullptr;
  const int leads = y.shape.rank() - 1;
  const TensorView *residual = given(args, operands_.residual), *scale = given(args, operands_.x_scale), *zero = given(args, operands_.zero_point);
  enum { X, Y, RESIDUAL, SCALE, ZERO, DELTA, SUM, NONE, COUNT };
  std::array<AxisSteps, COUNT> steps{};
  steps[X] = steps_along(x, leads, 1);
  steps[Y] = steps_along(y, leads, 1);
  if (residual != nullptr) steps[RESIDUAL] = steps_along(*residual, leads, 1);
  if (scale != nullptr && left_.group != 0) steps[SCALE] = steps_along(*scale, leads, scale->shape.rank() - leads);
  if (zero != nullptr && zero->elements() != 1) steps[ZERO] = steps_along(*zero, leads, 0);
  if (delta != nullptr) {
    steps[DELTA] = steps_along(*delta, leads, 1);
    steps[SUM] = steps_along(*sum, leads, 1);
  }
  const RowAxes axes = merge_axes(y.shape, leads, steps, NONE);

  gemv::Params p{};
  set_weights(args, p);
  set_scales(args, p);
  p.rows = static_cast<std::int32_t>(axes.m());
  p.columns = static_cast<std::int32_t>(y.shape.back());
  const auto along = [&](int operand) { return steps[static_cast<std::size_t>(operand)][static_cast<std::size_t>(axes.rank - 1)]; };
  p.x_stride = along(X);
  p.y_stride = along(Y);
  p.residual_stride = along(RESIDUAL);
  p.x_scale_stride = along(SCALE);
  p.zero_point_stride = along(ZERO);
  if (const TensorView* weight = given(args, norm_weight_)) {
    p.norm_weight = weight->data;
    p.epsilon = epsilon_;
    p.norm_offset = norm_offset_;
    p.delta_stride = along(DELTA);
    p.sum_stride = along(SUM);
  }
  const std::int64_t results = axes.m() * y.shape.back();
  const std::int64_t blocks = stream_ ? args.queue->target().multiprocessors : args.queue->resident_blocks(0);
  p.shares = static_cast<std::int32_t>(std::min({blocks, results, std::max<std::int64_t>(1, results * row_bytes_ / least_share)}));

  for (std::int64_t batch = 0; batch < axes.batches(); ++batch) {
    const auto at = [&](const TensorView* view, int operand) -> std::byte* {
      if (view == nullptr) return nullptr;
      std::int64_t offset = 0, rest = batch;
      for (int axis = axes.rank - 2; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        offset += rest % axes.dims[a] * steps[static_cast<std::size_t>(operand)][a];
        rest /= axes.dims[a];
      }
      return view->as<std::byte>() + offset * static_cast<std::int64_t>(size_of(view->dtype));
    };
    p.x = at(&x, X);
    p.y = at(&y, Y);
    p.residual = at(residual, RESIDUAL);
    p.delta = at(delta, DELTA);
    p.sum = at(sum, SUM);
    p.x_scale = reinterpret_cast<const float*>(at(scale, SCALE));
    p.zero_point = reinterpret_cast<const std::int32_t*>(at(zero, ZERO));
    args.queue->run(0, p.shares, p);
  }
}

}  // namespace cermet::cuda
