// The host half of depthwise convolution: places and channels are cut into blocks for threads.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/conv/depthwise_rows.hpp"
#include "kernel/cpu/conv/weights.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cpu {
namespace {

struct Plan {
  ConvGeometry geometry;
  AnchorOperands operands;
  ConvStore store;
  bool prepacked;
  MultiplyDepthwise multiply;

  explicit Plan(const Region& region)
      : geometry(conv_geometry(region.problem())),
        operands(region),
        store(region),
        prepacked(region.problem().is_constant(1) && region.problem().input(1).rank() > 3),
        multiply(depthwise_product(geometry.kernel[2], geometry.stride[2], geometry.dilation[2])) {}
};

void conv_depthwise(const LaunchArgs& args, const Plan& plan) {
  const TensorView x = plan.operands(args, 0), weight = plan.operands(args, 1), &y = args.outputs[plan.store.result];
  if (y.elements() == 0) return;
  if (!plan.prepacked) conv_channels.pack(weight, args.workspace, *args.pool);
  const float* const packed =
      plan.prepacked ? weight.as<const float>() : reinterpret_cast<const float*>(args.workspace);
  const std::int64_t channels = weight.shape[0];
  const ConvStoreRun store(plan.store, args);
  const DepthwiseRows launch{.g = plan.geometry,
                             .x = x.as<const float>(),
                             .in = conv_tensor(x, true),
                             .out = conv_tensor(y, true),
                             .weight = packed,
                             .width = round_up(channels, panel_columns),
                             .store = store,
                             .multiply = plan.multiply};
  const std::int64_t rows = launch.out.batch() * launch.out.dims[2] * launch.out.dims[3];
  // Some channels of a row of places: a few items for each thread, of whole panels.
  const std::int64_t wanted = args.pool->size() == 1 ? 1 : 8 * args.pool->size(),
                     pieces = std::clamp<std::int64_t>(div_up(wanted, rows), 1, channels / panel_columns + 1);
  // Pieces share no channel; the last one is wider where few would be left.
  const std::int64_t step = round_up(div_up(channels, pieces), panel_columns),
                     used = std::max<std::int64_t>(1, (channels + step - least_depthwise_channels) / step);
  const auto begin_of = [&](std::int64_t piece) { return piece == used ? channels : piece * step; };
  args.pool->parallel_for(rows * used, 1, [&](std::int64_t begin, std::int64_t end) {
    if (used == 1) return launch.run(begin, end, 0, channels);
    for (std::int64_t item = begin; item < end; ++item)
      launch.run(item / used, item / used + 1, begin_of(item % used), begin_of(item % used + 1));
  });
}

Decline declines(const Region& region) {
  if (Decline reason = declines_depthwise(region.problem())) return reason;
  return ConvStore::declines(region);
}

}  // namespace

extern const Kernel conv_depthwise_nhwc{
    .name = "conv.depthwise",
    .op = OpKind::conv,
    .summary = "a group for each channel: vectors of channels, seven places at a time",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region) -> Launcher {
      return [plan = Plan(region)](const LaunchArgs& args) { conv_depthwise(args, plan); };
    },
    .weight_layout = [](const Region& region, std::size_t operand) -> const WeightLayout* {
      return region.operand_of(1) == operand && region.problem().input(1).rank() > 3 ? &conv_channels : nullptr;
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      return p.is_constant(1) && p.input(1).rank() > 3 ? 0 : conv_channels.bytes(p.input(1));
    },
    .cost =
        [](const Region& region, const DeviceLimits& limits) {
          return roofline_seconds(region, limits.f32_operations_per_second, limits);
        },
};

}  // namespace cermet::cpu
