// group_norm and instance_norm. Groups of images with their channels last are copied to a thread's own memory, channel
// by channel, which keeps the order of the sums, and the bits.
#include <algorithm>
#include <atomic>

#include "base/checked.hpp"
#include "kernel/cpu/before_anchor.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/rowwise/channel_group.hpp"
#include "kernel/cpu/rowwise/channel_region.hpp"

namespace cermet::cpu {
namespace {

struct Plan {
  ChannelRegion region;
  float eps;
  Launcher after;

  explicit Plan(const Region& r) : region(r), eps(static_cast<float>(r.problem().attributes.number("eps"))) {
    if (region.activation == 0) return;
    const Problem& p = r.nodes[region.activation].problem;
    after = kernel_without_workspace(p)->bind(p);
  }
};

/// Channels [first, first + count) of a sample: [count, spatial..] of an image in either order.
TensorView channels_of(const TensorView& image, bool is_last, std::int64_t sample, std::int64_t first,
                       std::int64_t count) {
  const int rank = image.shape.rank(), channel = is_last ? rank - 1 : 1;
  Shape shape{count}, strides{image.strides[channel]};
  for (int axis = 1; axis < rank; ++axis) {
    if (axis == channel) continue;
    shape.push_back(image.shape[axis]);
    strides.push_back(image.strides[axis]);
  }
  const std::int64_t offset = sample * image.strides[0] + first * image.strides[channel];
  return {image.as<std::byte>() + offset * byte_size(image.dtype), image.dtype, shape, strides};
}

/// The same with the channels after the spatial axes, so that they are copied in runs.
TensorView channels_behind(const TensorView& view) {
  Shape shape, strides;
  for (int axis = 1; axis <= view.shape.rank(); ++axis) {
    shape.push_back(view.shape[axis % view.shape.rank()]);
    strides.push_back(view.strides[axis % view.shape.rank()]);
  }
  return {view.data, view.dtype, shape, strides};
}

void copy(const TensorView& from, const TensorView& to) {
  static ThreadPool own_thread(1);
  strided_copy(from.shape, from.data, from.strides, to.data, to.strides, size_of(from.dtype), own_thread);
}

/// All of one launch.
struct Launch {
  const LaunchArgs& args;
  const ChannelRegion& region;
  const TensorView& y;
  std::int64_t channels, groups, per_group, positions, x_bytes, y_bytes;  ///< bytes: of a thread's copies of a group
  ChannelNorm norm;

  Launch(const LaunchArgs& launch_args, const Plan& plan)
      : args(launch_args),
        region(plan.region),
        y(args.outputs[region.result]),
        channels(y.shape[region.to_last ? y.shape.rank() - 1 : 1]),
        groups(region.groups == 0 ? channels : region.groups),
        per_group(groups == 0 ? 0 : channels / groups),
        positions(y.elements() == 0 ? 0 : y.elements() / (y.shape[0] * channels)),
        x_bytes(copy_bytes(region.from_last, x().dtype)),
        y_bytes(copy_bytes(region.to_last && !in_place(), y.dtype)),
        norm{vector(region.weight), vector(region.bias), plan.eps, plan.after} {}

  const TensorView& x() const { return args.inputs[region.parts[0]]; }
  bool in_place() const { return region.from_last && x().dtype == y.dtype; }
  std::int64_t copy_bytes(bool copies, DType dtype) const {
    return copies ? round_up(per_group * positions * byte_size(dtype), 64) : 0;
  }
  TensorView vector(std::optional<std::size_t> operand) const {
    return operand && args.has(*operand) ? args.inputs[*operand] : TensorView();
  }

  /// Channels of a sample from the parts that have them, to a dense view and to the joined image.
  void gather(std::int64_t sample, std::int64_t first, const TensorView& to) const {
    std::int64_t begin = 0;
    for (const std::size_t part : region.parts) {
      const TensorView& image = args.inputs[part];
      const std::int64_t end = begin + image.shape.back(), from = std::max(first, begin),
                         count = std::min(first + per_group, end) - from;
      if (count > 0) {
        const TensorView own = channels_of(image, true, sample, from - begin, count);
        TensorView place = to;
        place.data = to.as<std::byte>() + (from - first) * positions * byte_size(to.dtype);
        place.shape[0] = count;
        copy(own, place);
        if (region.joined)
          copy(channels_behind(own),
               channels_behind(channels_of(args.outputs[*region.joined], true, sample, from, count)));
      }
      begin = end;
    }
  }

  /// Group `index` of all samples; `memory`: of the thread.
  void run(std::int64_t index, std::byte* memory) const {
    const std::int64_t sample = index / groups, first = index % groups * per_group;
    const TensorView result = channels_of(y, region.to_last, sample, first, per_group);
    std::byte* const own_y = !region.to_last ? result.as<std::byte>() : in_place() ? memory : memory + x_bytes;
    const std::byte* own_x = memory;
    if (region.from_last) gather(sample, first, {memory, x().dtype, result.shape});
    else own_x = channels_of(x(), false, sample, first, per_group).as<const std::byte>();
    normalize_group({own_x, own_y, x().dtype, y.dtype, first, per_group, positions}, norm);
    if (region.to_last) copy(channels_behind(TensorView(own_y, y.dtype, result.shape)), channels_behind(result));
  }
};

void group_norm(const LaunchArgs& args, const Plan& plan) {
  const Launch launch(args, plan);
  if (launch.y.elements() == 0) return;
  const std::int64_t count = launch.y.shape[0] * launch.groups;
  std::atomic<std::int64_t> next{0};
  args.pool->run([&](int thread) {
    std::byte* const memory = args.workspace + thread * (launch.x_bytes + launch.y_bytes);
    for (std::int64_t g = next.fetch_add(1); g < count; g = next.fetch_add(1)) launch.run(g, memory);
  });
}

std::int64_t workspace_of_groups(const Region& region, int threads) {
  const ChannelRegion r(region);
  const Problem& p = region.problem();
  const std::int64_t channels = p.size(0, 1), groups = r.groups == 0 ? channels : r.groups;
  const std::int64_t samples = std::max<std::int64_t>(1, p.size(0, 0) * groups),
                     length = p.input(0).elements().value(p.maximum) / samples;
  const auto bytes = [&](DType dtype) { return round_up(length * byte_size(dtype), 64); };
  const DType x = p.input(0).dtype, y = p.outputs[0].dtype;
  const std::int64_t own = (r.from_last ? bytes(x) : 0) + (r.to_last && !(r.from_last && x == y) ? bytes(y) : 0);
  return own * threads;
}

Launcher bind_groups(const Region& region) {
  return [plan = Plan(region)](const LaunchArgs& args) { group_norm(args, plan); };
}

}  // namespace

extern const Kernel rowwise_group_norm{
    .name = "rowwise.group_norm",
    .op = OpKind::group_norm,
    .summary = "a pass for the mean, one for the variance, one to scale channel by channel; groups spread over threads",
    .fuses = true,
    .declines = ChannelRegion::declines,
    .bind = bind_groups,
    .workspace = workspace_of_groups,
};

extern const Kernel rowwise_instance_norm{
    .name = "rowwise.instance_norm",
    .op = OpKind::instance_norm,
    .summary = "a pass for the mean, one for the variance, one to scale; channels spread over threads",
    .fuses = true,
    .declines = ChannelRegion::declines,
    .bind = bind_groups,
    .workspace = workspace_of_groups,
};

}  // namespace cermet::cpu
