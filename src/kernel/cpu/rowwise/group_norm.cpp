// Norms over groups of channels: group_norm and instance_norm.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/group_norm.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/before_anchor.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/rowwise/moments-inl.hpp"
#include "kernel/step_builder.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

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
