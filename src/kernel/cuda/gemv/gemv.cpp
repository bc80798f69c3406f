#include "kernel/cuda/gemv/gemv.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// Rows of one GEMM, and rows of a mixture's grouped GEMM, up to which weights are streamed once for each.
constexpr std::int64_t most_rows = 1, most_grouped_rows = 32;

/// Bytes of weight that make a block worth starting.
constexpr std::int64_t least_share = 8192;

bool streams(const Problem& p, std::int64_t row_bytes) { return p.target->compute_capability >= 90 && row_bytes > 0 && row_bytes % 16 == 0; }

bool constant_shape(const Problem& p, std::size_t operand) {
  const Dims& dims = p.input(operand).dims;
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
}

bool is_norm(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm; }
bool adds(const Problem& norm) { return norm.op->kind == OpKind::add_rms_norm; }
std::size_t weight_of(const Problem& norm) { return adds(norm) ? 2 : 1; }

/// The normalization of a region that begins with one; null for a product alone.
const Problem* norm_of(const Region& region) { return region.anchor == 0 ? nullptr : &region.nodes.front().problem; }

Decline declines_sizes(const Problem& p) {
  const std::int64_t limit = p.op->kind == OpKind::grouped_linear ? most_grouped_rows : most_rows;
  if (const std::int64_t rows = max_rows(p, 0); rows > limit) return fmt::format("up to {} rows: a weight is read once for each of them", rows);
  if (!constant_shape(p, 1)) return "the weight's shape is not known beforehand";
  const std::int64_t k = p.size(1, -1), n = p.size(1, -2), bytes = k * static_cast<std::int64_t>(size_of(p.input(1).dtype));
  if (k > gemv::longest_row || bytes > gemv::widest_row) return fmt::format("rows of {} elements do not fit in registers", k);
  if (n > std::int64_t{1} << 30) return fmt::format("{} columns are more than 32-bit numbers count", n);
  return std::nullopt;
}

}  // namespace

Decline FewRows::declines(const Region& region) {
  if (Decline reason = declines_sizes(region.problem())) return reason;
  return Product::declines(region);
}

Decline FewRows::declines_norm(const Region& region) {
  if (region.anchor == 0) return "expects a normalization before it";
  if (region.anchor != 1 || !is_norm(region.nodes[0].problem.op->kind)) return "computes one normalization before the product";
  const Problem& norm = region.nodes[0].problem;
  const RegionInput& row = region.nodes[1].inputs[0];
  std::int64_t readers = 0;
  for (const RegionNode& node : region.nodes) readers += std::ranges::count_if(node.inputs, [](const RegionInput& i) { return i.is_inside() && i.index == 0; });
  if (!row.is_inside() || row.output != 0 || readers != 1) return "the product reads the normalization as more than its left operand";
  if (std::ranges::find(region.results, RegionPlace{0, 0}) != region.results.end()) return "the normalized row is read elsewhere";
  if (adds(norm) != (std::ranges::find(region.results, RegionPlace{0, 1}) != region.results.end())) return "the sum stays inside";
  if (norm.outputs[0].dtype != DType::f32) return "the normalized row is rounded";
  if (!norm.has(weight_of(norm)) || norm.input(weight_of(norm)).rank() != 1) return "the normalization has no weight of a row";
  if (adds(norm) && norm.attributes.flag("round_sum")) return "the sum is rounded before it is normalized";
  if (Decline reason = declines_sizes(region.problem())) return reason;
  return Product::declines_after(region);
}

FewRows::FewRows(const Region& region, const Config& config)
    : product_(region),
      row_bytes_(region.problem().size(1, -1) * static_cast<std::int64_t>(size_of(region.problem().input(1).dtype))),
      constant_(region.is_constant(static_cast<std::size_t>(product_.at.w)) &&
                (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)))),
      stream_(config.empty() ? streams(region.problem(), row_bytes_) : config.at("stream") != 0) {
  const Problem& p = region.problem();
  const Problem* const norm = norm_of(region);
  if (norm != nullptr) {
    product_.at.x = static_cast<int>(*region.operand_of(0, adds(*norm) ? 1 : 0));
    norm_weight_ = static_cast<int>(*region.operand_of(0, weight_of(*norm)));
    if (adds(*norm)) {
      delta_ = static_cast<int>(*region.operand_of(0, 0));
      sum_ = static_cast<int>(std::ranges::find(region.results, RegionPlace{0, 1}) - region.results.begin());
    }
    epsilon_ = static_cast<float>(norm->attributes.number("eps"));
    norm_offset_ = static_cast<float>(norm->attributes.number("weight_offset"));
  }
  if (product_.at.offsets >= 0) offsets_ = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
  const DType w = p.input(1).dtype;
  const bool integer = w == DType::i8;
  const int element = static_cast<int>(size_of(w)), k = static_cast<int>(p.size(1, -1));
  const int sums = (product_.at.w_up >= 0 ? 2 : 1) + (product_.column_sums ? 1 : 0);
  const gemv::RowShape shape = gemv::row_shape(k, element, stream_, integer && product_.blocked, sums);
  const int held = shape.held * (integer ? 4 : 16 / element);  // registers of a row
  programs_.push_back({.header = "kernel/cuda/device/gemv/row.cuh",
                       .task = row_task(p, norm),
                       .prelude = product_.epilogue.source,
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

std::string FewRows::row_task(const Problem& p, const Problem* norm) const {
  return fmt::format(
      "cermet::gemv::Row<cermet::gemv::Config{{.k = {}, .x = {}, .w = {}, .offsets = {}, .blocked = {}, .dual = {}, .grouped = {}, .stream = {}, .prologue = "
      "{{{}}}}}, {}>",
      p.size(1, -1), device_name(norm ? norm->input(adds(*norm) ? 1 : 0).dtype : p.input(0).dtype), device_name(p.input(1).dtype), device_name(offsets_),
      device_name(product_.blocked), device_name(product_.at.w_up >= 0), device_name(product_.at.offsets >= 0), device_name(stream_),
      norm ? norm_config(*norm) : "", product_.epilogue.name);
}

std::string FewRows::norm_config(const Problem& norm) {
  return fmt::format(".norm = true, .delta = {}, .weight = {}, .sum = {}", device_name(norm.input(0).dtype), device_name(norm.input(weight_of(norm)).dtype),
                     device_name(norm.outputs.back().dtype));
}

void FewRows::set_weights(const LaunchArgs& args, gemv::Params& p) const {
  const TensorView& w = *product_.given(args, product_.at.w);
  p.w = w.data;
  p.w_stride = w.strides[w.shape.rank() - 2];
  if (const TensorView* up = product_.given(args, product_.at.w_up)) {
    p.w_up = up->data;
    p.w_up_stride = up->strides[0];
  }
  if (const TensorView* offsets = product_.given(args, product_.at.offsets)) {
    p.w_group_stride = w.strides[0];
    p.offsets = offsets->data;
    p.groups = narrow(w.shape[0], "product", "groups");
  }
  p.constant = constant_ ? 1 : 0;
}

void FewRows::set_scales(const LaunchArgs& args, gemv::Params& p) const {
  p.w_scale_columns = 1;
  if (const TensorView* scale = product_.given(args, product_.at.w_scale)) {
    const int first = product_.at.offsets >= 0 ? 1 : 0;
    p.w_scale = scale->as<const float>();
    if (first == 1) p.w_scale_group_stride = scale->strides[0];
    if (product_.right.group != 0) {
      p.w_scale_columns = narrow(product_.right.group, "product", "columns of a scale");
      p.w_scale_stride = scale->strides[first];
      p.w_scale_block = product_.right.blocks > 1 ? 1 : 0;
    }
  }
  p.x_scale_block = product_.left.blocks > 1 ? 1 : 0;
}

void FewRows::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  const TensorView *delta = product_.given(args, delta_), *sum = sum_ >= 0 ? &args.outputs[static_cast<std::size_t>(sum_)] : nullptr;
  const int leads = y.shape.rank() - 1;
  const TensorView* scale = product_.given(args, product_.at.x_scale);
  const std::size_t extras = product_.extras().size();
  enum { X, Y, SCALE, DELTA, SUM, NONE, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  std::array<AxisSteps, COUNT> steps{};
  steps[X] = steps_along(x, leads, 1);
  steps[Y] = steps_along(y, leads, 1);
  if (scale != nullptr && product_.left.group != 0) steps[SCALE] = steps_along(*scale, leads, scale->shape.rank() - leads);
  if (delta != nullptr) {
    steps[DELTA] = steps_along(*delta, leads, 1);
    steps[SUM] = steps_along(*sum, leads, 1);
  }
  for (std::size_t i = 0; i < extras; ++i) steps[EXTRA + i] = product_.extra_steps(args, i, leads);
  const RowAxes axes = merge_axes(y.shape, leads, steps, NONE);

  gemv::Params p{};
  set_weights(args, p);
  set_scales(args, p);
  p.rows = narrow(axes.m(), "product", "rows");
  p.columns = narrow(y.shape.back(), "product", "columns");
  const auto along = [&](std::size_t operand) { return steps[operand][static_cast<std::size_t>(axes.rank - 1)]; };
  p.x_stride = along(X);
  p.y_stride = along(Y);
  p.x_scale_stride = along(SCALE);
  if (const TensorView* weight = product_.given(args, norm_weight_)) {
    p.norm_weight = weight->data;
    p.epsilon = epsilon_;
    p.norm_offset = norm_offset_;
    p.delta_stride = along(DELTA);
    p.sum_stride = along(SUM);
  }
  for (std::size_t i = 0; i < extras; ++i) {
    p.extra[i] = product_.operand(args, i);
    p.extra[i].row = along(EXTRA + i);
  }
  const std::int64_t results = axes.m() * y.shape.back();
  const std::int64_t blocks = stream_ ? args.queue->target().multiprocessors : args.queue->resident_blocks(0);
  p.shares = static_cast<std::int32_t>(std::min({blocks, results, std::max<std::int64_t>(1, results * row_bytes_ / least_share)}));

  for (std::int64_t batch = 0; batch < axes.batches(); ++batch) {
    const auto at = [&](const TensorView* view, std::size_t operand) -> std::byte* {
      if (view == nullptr) return nullptr;
      std::int64_t offset = 0, rest = batch;
      for (int axis = axes.rank - 2; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        offset += rest % axes.dims[a] * steps[operand][a];
        rest /= axes.dims[a];
      }
      return view->as<std::byte>() + offset * static_cast<std::int64_t>(size_of(view->dtype));
    };
    p.x = at(&x, X);
    p.y = at(&y, Y);
    p.delta = at(delta, DELTA);
    p.sum = at(sum, SUM);
    p.x_scale = reinterpret_cast<const float*>(at(scale, SCALE));
    for (std::size_t i = 0; i < extras; ++i) p.extra[i].data = at(&product_.extra(args, i), EXTRA + i);
    args.queue->run(0, p.shares, p);
  }
}

}  // namespace cermet::cuda
