// Norms that subtract a mean: layer_norm, group_norm and instance_norm.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/before_anchor.hpp"
#include "kernel/cpu/reduce/lanes-inl.hpp"
#include "kernel/cpu/rowwise/region.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/step_builder.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct MeanAndScale {
  float mean, scale;  ///< scale = 1 / sqrt(variance + eps)
};

/// Two passes: the mean, then the squared deviations from it.
MeanAndScale statistics(RowIn x, std::size_t length, float eps) {
  TileBuffer buffer;
  Real total[4] = {0.0, 0.0, 0.0, 0.0};
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR { combine_tile<Sum>(x.read(first, n, buffer), n, total); });
  const float mean = combine_all<Sum>(total) / static_cast<float>(length);
  const auto center = hn::Set(FloatTag(), mean);
  auto squares = hn::Zero(FloatTag());
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* values = x.read(first, n, buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const auto deviation = hn::Sub(load_n(values + i, count, mean), center);
      squares = hn::MulAdd(deviation, deviation, squares);
    });
  });
  return {mean, 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + eps)};
}

/// y = (x - mean) * scale * weight + bias with a weight and bias per element, either of which may be missing.
void layer_norm_row(RowIn x, RowIn weight, RowIn bias, RowOut y, std::size_t length, float eps) {
  const MeanAndScale row = statistics(x, length, eps);
  const auto mean = hn::Set(FloatTag(), row.mean), scale = hn::Set(FloatTag(), row.scale);
  TileBuffer x_buffer, weight_buffer, bias_buffer, y_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float *values = x.read(first, n, x_buffer), *w = weight ? weight.read(first, n, weight_buffer) : nullptr;
    const float* b = bias ? bias.read(first, n, bias_buffer) : nullptr;
    float* result = y.tile(first, y_buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      auto v = hn::Mul(hn::Sub(load_n(values + i, count), mean), scale);
      if (w) v = hn::Mul(v, load_n(w + i, count));
      if (b) v = hn::Add(v, load_n(b + i, count));
      store_n(v, result + i, count);
    });
    y.commit(first, n, y_buffer);
  });
}

void layer_norm(const LaunchArgs& args, float eps) {
  const auto vector = [&](std::size_t operand) {
    return args.has(operand) ? RowIn{args.inputs[operand].as<std::byte>(), args.inputs[operand].dtype} : RowIn{};
  };
  const RowIn weight = vector(1), bias = vector(2);
  const int trailing = args.has(1) ? args.inputs[1].shape.rank() : args.has(2) ? args.inputs[2].shape.rank() : 1;
  const Rows from(args.inputs[0], trailing), to(args.outputs[0], trailing);
  args.pool->parallel_for(from.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      layer_norm_row({from.row(r), args.inputs[0].dtype}, weight, bias, {to.row(r), args.outputs[0].dtype}, static_cast<std::size_t>(from.length()), eps);
  });
}

/// y = x * factor + added over one channel of a group.
void scale_channel(RowIn x, RowOut y, std::size_t begin, std::size_t length, float factor, float added) {
  const auto f = hn::Set(FloatTag(), factor), a = hn::Set(FloatTag(), added);
  TileBuffer x_buffer, y_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* values = x.read(begin + first, n, x_buffer);
    float* result = y.tile(begin + first, y_buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR { store_n(hn::MulAdd(load_n(values + i, count), f, a), result + i, count); });
    y.commit(begin + first, n, y_buffer);
  });
}

/// `groups` 0 means one for each channel; `after`, if there is one, runs in place over what a channel has just become.
void group_norm(const LaunchArgs& args, std::int64_t groups, float eps, const Launcher& after) {
  static ThreadPool own_thread(1);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.elements() == 0) return;
  const std::int64_t channels = x.shape[1], count = groups == 0 ? channels : groups, per_group = channels / count;
  const Rows from(x, x.shape.rank() - 1), to(y, x.shape.rank() - 1);
  const std::int64_t positions = from.length() / channels, length = per_group * positions;
  const auto parameter = [&](std::size_t operand, std::int64_t c, float fallback) HWY_ATTR {
    TileBuffer buffer;
    return args.has(operand) ? *RowIn{args.inputs[operand].as<std::byte>(), args.inputs[operand].dtype}.read(static_cast<std::size_t>(c), 1, buffer) : fallback;
  };
  args.pool->parallel_for(from.count() * count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int64_t start = g % count * length;  // of the group within its sample
      const RowIn group{from.row(g / count) + start * static_cast<std::int64_t>(size_of(x.dtype)), x.dtype};
      const RowOut result{to.row(g / count) + start * static_cast<std::int64_t>(size_of(y.dtype)), y.dtype};
      const MeanAndScale row = statistics(group, static_cast<std::size_t>(length), eps);
      for (std::int64_t c = 0; c < per_group; ++c) {
        const float factor = row.scale * parameter(1, g % count * per_group + c, 1);
        const float added = parameter(2, g % count * per_group + c, 0) - row.mean * factor;
        scale_channel(group, result, static_cast<std::size_t>(c * positions), static_cast<std::size_t>(positions), factor, added);
        if (!after) continue;
        const TensorView made(result.data + c * positions * static_cast<std::int64_t>(size_of(y.dtype)), y.dtype, {positions});
        after({.inputs = {&made, 1}, .outputs = {&made, 1}, .pool = &own_thread});
      }
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(layer_norm);
HWY_EXPORT(group_norm);

namespace {

/// The node behind a norm of channels.
const Problem& behind(const Region& region) { return region.nodes[1].problem; }

Decline group_norm_declines(const Region& region) {
  if (region.is_single()) return std::nullopt;
  if (region.anchor != 0 || region.nodes.size() != 2) return "one activation at most follows the normalization";
  const Problem& p = behind(region);
  if (!is_elementwise(p.op->kind) || p.inputs.size() != 1) return fmt::format("{} is no activation", p.op->name);
  if (region.results.size() != 1 || region.results[0].node != 1) return "others read what is normalized, too";
  if (region.nodes[1].inputs[0].rounding != Rounding::strict || p.input(0).dtype != p.outputs[0].dtype) return "it works in place, on what was stored";
  return kernel_without_workspace(p) ? std::nullopt : Decline("no kernel computes it");
}

Launcher bind_group_norm(const Region& region) {
  const Problem& p = region.problem();
  const std::int64_t groups = p.op->kind == OpKind::group_norm ? p.attributes.integer("groups") : 0;
  Launcher after;
  if (!region.is_single()) after = kernel_without_workspace(behind(region))->bind(behind(region));
  return [groups, eps = static_cast<float>(p.attributes.number("eps")), after = std::move(after)](const LaunchArgs& args) {
    HWY_DYNAMIC_DISPATCH(group_norm)(args, groups, eps, after);
  };
}

}  // namespace

extern const Kernel rowwise_layer_norm;
const Kernel rowwise_layer_norm = with_row_regions({
    .name = "rowwise.layer_norm",
    .op = OpKind::layer_norm,
    .summary = "a pass for the mean, one for the variance, one to scale; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(layer_norm)(args, eps); };
    },
});

extern const Kernel rowwise_group_norm{
    .name = "rowwise.group_norm",
    .op = OpKind::group_norm,
    .summary = "a pass for the mean, one for the variance, one to scale channel by channel; groups spread over threads",
    .fuses = true,
    .declines = group_norm_declines,
    .bind = bind_group_norm,
};

extern const Kernel rowwise_instance_norm{
    .name = "rowwise.instance_norm",
    .op = OpKind::instance_norm,
    .summary = "a pass for the mean, one for the variance, one to scale; channels spread over threads",
    .fuses = true,
    .declines = group_norm_declines,
    .bind = bind_group_norm,
};

}  // namespace cermet::cpu
#endif
