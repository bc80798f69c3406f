// A launch of a GEMV: its parameters from the operands of a run.
#include <array>

#include "base/checked.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/gemv/compact.hpp"
#include "kernel/cuda/gemv/gemv.hpp"
#include "kernel/cuda/narrow.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// Bytes of weight that make a block worth starting.
constexpr std::int64_t least_share = 8192;

/// Strides of whole 16 elements suffice, whatever the type is.
bool rows_are_aligned(const gemv::Params& p) {
  const auto are = [&](const void* data, std::int64_t stride) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && (p.rows == 1 || stride % 16 == 0);
  };
  return are(p.x, p.x_stride) && are(p.delta, p.delta_stride) && are(p.sum, p.sum_stride) &&
         are(p.normed, p.normed_stride) && are(p.norm_weight, 0);
}

}  // namespace

void Gemv::set_weights(const LaunchArgs& args, gemv::Params& p) const {
  const TensorView& w = *product_.given(args, product_.at.w);
  p.w = w.data;
  p.w_stride = w.strides[w.shape.rank() - 2];
  if (const TensorView up = product_.second_weight(args); up.present) {
    p.w_up = up.data;
    p.w_up_stride = up.strides[up.shape.rank() - 2];
  }
  if (config_.compact) {
    // Both matrices are packed by themselves, or, where `up` is the lower half of one, its rows and factors are.
    const bool is_half = product_.at.w_up < 0 && p.w_up != nullptr;
    const auto factors = [&](const void* matrix) {
      return reinterpret_cast<const float*>(static_cast<const std::byte*>(matrix) + w.shape[0] * row_bytes_);
    };
    p.w_factors = factors(p.w);
    if (is_half) p.w_up = static_cast<const std::byte*>(p.w) + w.shape[0] / 2 * row_bytes_;
    if (p.w_up != nullptr) p.w_up_factors = is_half ? p.w_factors + w.shape[0] / 2 : factors(p.w_up);
    p.w_stride = p.w_up_stride = row_bytes_ / 2;
  }
  if (const TensorView* offsets = product_.given(args, product_.at.offsets)) p.offsets = offsets->data;
  if (w.shape.rank() == 3) {
    p.w_group_stride = w.strides[0];
    p.groups = narrow(w.shape[0], "product", "groups");
  }
  p.constant = constant_ ? 1 : 0;
}

void Gemv::set_routing(const LaunchArgs& args, gemv::Params& p) const {
  const TensorView* const ids = product_.given(args, ids_);
  if (ids == nullptr && !gating_) return;
  if (ids != nullptr) {
    p.ids = ids->data;
    p.ids_stride = ids->strides[0];
  }
  p.choices = narrow(gating_ ? gating_->choices() : ids->shape[1], "product", "choices");
  if (sorted_offsets_ >= 0)
    p.sorted_offsets = args.outputs[static_cast<std::size_t>(sorted_offsets_)].as<std::int32_t>();
  if (row_of_ >= 0) {
    const TensorView& row_of = args.outputs[static_cast<std::size_t>(row_of_)];
    p.row_of = row_of.as<std::int32_t>();
    p.row_of_stride = row_of.strides[0];
  }
}

void Gemv::set_scales(const LaunchArgs& args, gemv::Params& p) const {
  p.w_scale_columns = 1;
  if (const TensorView* scale = product_.given(args, product_.at.w_scale)) {
    const int first = p.groups > 0 ? 1 : 0;
    p.w_scale = scale->as<const float>();
    if (first == 1) p.w_scale_group_stride = scale->strides[0];
    if (product_.right.group != 0) {
      p.w_scale_columns = narrow(product_.right.group, "product", "columns of a scale");
      p.w_scale_stride = scale->strides[first];
      if (product_.right.blocks > 1)
        p.w_scale_block = narrow(scale->strides.back(), "product", "elements between scales");
    }
  }
  if (const TensorView* scale = product_.given(args, product_.at.x_scale); scale && product_.left.blocks > 1)
    p.x_scale_block = narrow(scale->strides.back(), "product", "elements between scales");
}

void Gemv::launch(const LaunchArgs& args, std::size_t first_program) const {
  const TensorView& x = *product_.given(args, product_.at.x);
  const TensorView y = heads_ ? heads_->rows(args) : args.outputs[product_.y];
  if (y.elements() == 0) return;
  const TensorView *delta = product_.given(args, delta_),
                   *sum = sum_ >= 0 ? &args.outputs[static_cast<std::size_t>(sum_)] : nullptr,
                   *normed = normed_ >= 0 ? &args.outputs[static_cast<std::size_t>(normed_)] : nullptr;
  const TensorView* const second = product_.second ? &args.outputs[product_.second->y] : nullptr;
  const int leads = y.shape.rank() - 1;
  const TensorView* scale = product_.given(args, product_.at.x_scale);
  const std::size_t extras = product_.extras().size();
  enum { X, Y, SECOND, SCALE, DELTA, SUM, NORMED, NONE, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  std::array<AxisSteps, COUNT> steps{};
  steps[X] = steps_along(x, leads, 1);
  steps[Y] = steps_along(y, leads, 1);
  if (second != nullptr) steps[SECOND] = steps_along(*second, leads, 1);
  if (scale != nullptr && product_.left.group != 0)
    steps[SCALE] = steps_along(*scale, leads, scale->shape.rank() - leads);
  if (delta != nullptr) {
    steps[DELTA] = steps_along(*delta, leads, 1);
    steps[SUM] = steps_along(*sum, leads, 1);
  }
  if (normed != nullptr) steps[NORMED] = steps_along(*normed, leads, 1);
  for (std::size_t i = 0; i < extras; ++i) steps[EXTRA + i] = product_.extra_steps(args, i, leads);
  RowAxes axes = merge_axes(y.shape, leads, steps, NONE);
  // Of rows with one slot of the cache the last is kept: a launch for each.
  if (heads_ && axes.m() > 1) {
    axes.dims[static_cast<std::size_t>(axes.rank)] = 1;
    for (AxisSteps& operand : steps) operand[static_cast<std::size_t>(axes.rank)] = 0;
    ++axes.rank;
  }

  rotation::WithOperands<gemv::Params> p{};
  set_weights(args, p);
  set_scales(args, p);
  set_routing(args, p);
  p.rows = narrow(axes.m(), "product", "rows");
  p.columns = narrow(y.shape.back(), "product", "columns");
  const auto stride = [&](std::size_t operand) { return steps[operand][static_cast<std::size_t>(axes.rank - 1)]; };
  p.x_stride = stride(X);
  p.y_stride = stride(Y);
  p.y_second_stride = stride(SECOND);
  p.x_scale_stride = stride(SCALE);
  if (const TensorView* weight = product_.given(args, norm_weight_)) {
    p.norm_weight = weight->data;
    p.epsilon = epsilon_;
    p.norm_offset = norm_offset_;
    p.delta_stride = stride(DELTA);
    p.sum_stride = stride(SUM);
    p.normed_stride = stride(NORMED);
  }
  for (std::size_t i = 0; i < extras; ++i) {
    p.extra[i] = product_.operand(args, i);
    p.extra[i].row = stride(EXTRA + i);
  }
  const std::int64_t results = axes.m() * y.shape.back();
  const std::int64_t blocks =
      config_.stream ? args.queue->target().multiprocessors : args.queue->resident_blocks(first_program);
  const std::int64_t bytes = results * row_bytes_ * (heads_ ? 2 : 1);
  p.share_out(results, std::min({blocks, results, std::max<std::int64_t>(1, bytes / least_share)}));

  for (std::int64_t batch = 0; batch < axes.batches(); ++batch) {
    const auto at = [&](const TensorView* view, std::size_t operand) -> std::byte* {
      if (view == nullptr) return nullptr;
      std::int64_t offset = 0, left = batch;
      for (int axis = axes.rank - 2; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        offset += left % axes.dims[a] * steps[operand][a];
        left /= axes.dims[a];
      }
      return view->as<std::byte>() + offset * byte_size(view->dtype);
    };
    p.x = at(&x, X);
    p.y = at(&y, Y);
    p.y_second = at(second, SECOND);
    p.delta = at(delta, DELTA);
    p.sum = at(sum, SUM);
    p.normed = at(normed, NORMED);
    p.x_scale = reinterpret_cast<const float*>(at(scale, SCALE));
    for (std::size_t i = 0; i < extras; ++i) {
      const TensorView& view = product_.extra(args, i);
      p.extra[i].data =
          static_cast<const std::byte*>(product_.operand(args, i).data) + (at(&view, EXTRA + i) - view.as<std::byte>());
    }
    p.aligned = rows_are_aligned(p) ? 1 : 0;
    if (heads_) heads_->set(args, p, batch);
    run(args, p, first_program);
    if (axes.batches() != 1) continue;
    OperandUse use;
    if (constant_ && p.groups == 0)
      use.early = {product_.given(args, product_.at.w), product_.given(args, product_.at.w_up)};
    declare_operands(args, use);
  }
}

void Gemv::run(const LaunchArgs& args, const rotation::WithOperands<gemv::Params>& p, std::size_t first_program) const {
  const std::size_t program = first_program + (aligned_ && !p.aligned ? 1 : 0);
  if (heads_) return args.queue->run(program, p.shares, p);
  if (gating_) args.queue->run(program, p.shares, gemv::GatedParams{p, gating_->params(args)});
  else args.queue->run(program, p.shares, static_cast<const gemv::Params&>(p));
  if (config_.stream && p.row_of != nullptr && p.sorted_offsets != nullptr)
    args.queue->publish(p.row_of, p.sorted_offsets);
}

}  // namespace cermet::cuda
